"""From the text of kernels to PTX and machine code for a GPU."""
