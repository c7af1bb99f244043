/* int32_t create_in_registers(void *out, const char *path, int cache, char **message): calls create_SRS as x86-64's
 * rules say for a struct of an int and a pointer, and takes the result from RAX and RDX. */
    .text
    .globl create_in_registers
    .type create_in_registers, @function
create_in_registers:
    pushq %rbx
    movq %rcx, %rbx
    movq $-1, %rax          /* so that what is read was written */
    call create_SRS@PLT
    movq %rdx, (%rbx)
    popq %rbx
    ret
    .size create_in_registers, .-create_in_registers
    .section .note.GNU-stack, "", @progbits
