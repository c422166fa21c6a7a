"""Blue-green: second generations of stream tables, exchanged with the public ones.

In come names and definitions; greens are ordinary stream tables, loaded and kept up like all others. Out go
publications that exchange two generations at one cut, and what is to be said of a deployment meanwhile.
"""
