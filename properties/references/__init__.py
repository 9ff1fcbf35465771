"""What each protocol does when its operations happen one after another: the pure cores, put together as references."""
