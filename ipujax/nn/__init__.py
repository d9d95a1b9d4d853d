"""Neural-network functions of popnn: each is one file, with its derivative."""
