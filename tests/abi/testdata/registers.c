/* Calls create_SRS on a missing file by registers.S, and clone_SRS by a declaration of its own. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t create_in_registers(void *out, const char *path, int cache, char **message);
struct handle { void *inner; };
struct handle clone_SRS(const struct handle *srs); /* 8 bytes, in RAX */

int main(void) {
    void *srs = (void *)0xA5;
    char *message = NULL;
    int32_t code = create_in_registers(&srs, "/nowhere/at-all.params", 1, &message);
    if (code != ENOENT || srs != NULL || message == NULL || strstr(message, "/nowhere/at-all.params") == NULL) {
        fprintf(stderr, "code %d, handle %p, message %s\n", code, srs, message ? message : "missing");
        return 1;
    }
    size_t length = strlen(message);
    memset(message, 'x', length); /* ours to write and to free */
    free(message);
    struct handle none = {NULL};
    return clone_SRS(&none).inner != NULL;
}
