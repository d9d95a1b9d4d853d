"""The public functions; the package re-exports them."""
