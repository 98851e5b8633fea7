"""Labels in any layout, a file a layout."""
