"""What attention variants cost in whole networks: operations, memory and time, in training and inference."""
