"""Small parts of the runner that scripts import."""
