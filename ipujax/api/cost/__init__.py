"""What programs cost, whether they fit, and what makes them fit."""
