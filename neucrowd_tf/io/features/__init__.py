"""What instances are described by: tables of features, images, texts."""
