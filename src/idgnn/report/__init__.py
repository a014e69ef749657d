"""From records to tables, charts and one HTML page. Imports no PyTorch."""
