"""What is proved without a protocol: sums of any length, how calls multiply, and what counting money loses."""
