"""Operations that users define: vertices, custom ops in C++, and functions on the host."""
