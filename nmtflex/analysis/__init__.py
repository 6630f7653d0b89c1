"""What runs show when they are looked at: trade-offs and figures."""
