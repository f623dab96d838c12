"""Training under the microscope: recipes, the training loop, and the monitor that any loop can carry."""
