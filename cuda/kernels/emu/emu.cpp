// The emulator behind emu.hpp, and the functions by which a host program finds and launches kernels:
//
//   const char* const* emu_kernels(void)
//       The names of all kernels, ended by NULL. The array is the library's.
//   int emu_parameters(const char* name, uint32_t* sizes, int capacity)
//       Writes the sizes in bytes of a kernel's parameters, as many as fit; returns their number, or -1 for an unknown name.
//   int emu_launch(const char* name, const uint32_t grid[3], const uint32_t block[3], uint32_t shared, void** arguments, uint64_t seed)
//       Runs a launch to its end: arguments[i] points to parameter i. Returns 0, or not 0 with a text from emu_error.
//       Callers may be in several threads; launches take turns.
//   const char* emu_error(void)
//       Why the calling thread's last launch failed; valid until its next.
#include "emu.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace sealc2::emu {
namespace {

// Context switches. swapcontext makes two system calls, which would be most of the time of a kernel with barriers.
#if defined(__x86_64__)
using Context = void*; // the stack pointer, below it the registers that calls preserve

__attribute__((naked, noinline)) void switch_context(Context*, Context) {
    asm("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret");
}
void change(Context& from, Context& to) { switch_context(&from, to); }
void prepare(Context& context, char* stack, size_t bytes, void (*entry)()) {
    void** top = reinterpret_cast<void**>(stack + bytes);
    *--top = nullptr; // the place of a return address: entry begins as if it had been called
    *--top = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    context = top;
}
#else
using Context = ucontext_t;
void change(Context& from, Context& to) { swapcontext(&from, &to); }
void prepare(Context& context, char* stack, size_t bytes, void (*entry)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = bytes;
    context.uc_link = nullptr;
    makecontext(&context, entry, 0);
}
#endif

constexpr size_t stack_bytes = 256 << 10; // with a guard page below
constexpr size_t page_bytes = 4096;
constexpr uint32_t most_threads = 1024;
constexpr uint32_t most_shared = 227 << 10; // of a block on compute capability 9.0
constexpr uint32_t fence_bytes = 256;       // behind the dynamic shared memory
constexpr int idle_rounds = 1 << 20;        // rounds in which threads only pause before they count as stuck

struct Kernel {
    const char* name;
    void (*function)();
    Invoke invoke;
    std::vector<uint32_t> sizes;
};
std::vector<Kernel>& kernels() {
    static std::vector<Kernel> all;
    return all;
}

enum class State { ready, paused, at_block, at_warp, ended };

struct Copy {
    void* to;
    const void* from;
    uint32_t bytes, group;
};

struct Thread {
    State state;
    uint3 index;
    Context context;
    char* stack; // nullptr before the first and after the last turn
    bool predicate;
    uint32_t answer, answered_threads; // of a block's barrier
    WarpOp op;
    uint32_t mask, source;
    uint64_t value, result;
    uint32_t group; // of copies, the one being filled
    std::vector<Copy> copies;
};

struct Random { // splitmix64
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    template <class T> void shuffle(std::vector<T>& items) {
        for (size_t i = items.size(); i > 1; i--) std::swap(items[i - 1], items[next() % i]);
    }
};

std::mutex turn;
thread_local std::string problem;

Context scheduler;
Thread threads[most_threads];
uint32_t self, thread_count, live, at_block;
std::vector<uint32_t> ready;
std::vector<char*> stacks;
const Kernel* kernel;
void** arguments;
std::string fault; // of the launch under way
uint64_t ticks;
alignas(1024) unsigned char shared_memory[most_shared + fence_bytes];

void fail(const char* what, uint32_t thread) {
    if (!fault.empty()) return;
    char text[256];
    std::snprintf(text, sizeof text, "%s: block (%u, %u, %u), thread %u: %s", kernel->name, blockIdx.x, blockIdx.y, blockIdx.z, thread, what);
    fault = text;
}

char* take_stack() {
    if (stacks.empty()) {
        void* at = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED || mprotect(at, page_bytes, PROT_NONE) != 0) return nullptr;
        stacks.push_back(static_cast<char*>(at));
    }
    char* stack = stacks.back();
    stacks.pop_back();
    return stack;
}

void leave(State state) {
    Thread& t = threads[self];
    t.state = state;
    change(t.context, scheduler);
}

void run_thread() {
    kernel->invoke(kernel->function, arguments);
    leave(State::ended);
}

void release(uint32_t i) {
    threads[i].state = State::ready;
    ready.push_back(i);
}

// settle_block lets the block go on when all threads that have not ended are at its barrier.
void settle_block() {
    if (at_block == 0 || at_block != live) return;
    uint32_t count = 0;
    for (uint32_t i = 0; i < thread_count; i++) count += threads[i].state == State::at_block && threads[i].predicate;
    for (uint32_t i = 0; i < thread_count; i++)
        if (threads[i].state == State::at_block) {
            threads[i].answer = count;
            threads[i].answered_threads = at_block;
            release(i);
        }
    at_block = 0;
}

// settle_warp completes an operation of a warp when all lanes of its mask that have not ended have come to it.
void settle_warp(uint32_t first, const Thread& like) {
    const uint32_t last = std::min(first + 32, thread_count);
    uint32_t here = 0;
    for (uint32_t i = first; i < last; i++) {
        const Thread& t = threads[i];
        if (!(like.mask >> (i - first) & 1) || t.state == State::ended) continue;
        if (t.state != State::at_warp || t.mask != like.mask || t.op != like.op) return;
        here |= 1u << (i - first);
    }
    for (uint32_t i = first; i < last; i++) {
        if (!(here >> (i - first) & 1)) continue;
        Thread& t = threads[i];
        t.result = 0;
        switch (t.op) {
        case WarpOp::sync: break;
        case WarpOp::shuffle:
            // A lane that is not part of it has no defined value.
            t.result = here >> (t.source & 31) & 1 ? threads[first + (t.source & 31)].value : 0xdeadbeefdeadbeefu;
            break;
        case WarpOp::ballot:
            for (uint32_t k = first; k < last; k++)
                if (here >> (k - first) & 1 && threads[k].value != 0) t.result |= 1u << (k - first);
            break;
        case WarpOp::match:
            for (uint32_t k = first; k < last; k++)
                if (here >> (k - first) & 1 && threads[k].value == t.value) t.result |= 1u << (k - first);
            break;
        }
    }
    for (uint32_t i = first; i < last; i++)
        if (here >> (i - first) & 1) release(i);
}

// settle_ended looks again at what waits in the warp of a thread that has ended.
void settle_ended(uint32_t ended) {
    const uint32_t first = ended & ~31u, last = std::min(first + 32, thread_count);
    for (uint32_t i = first; i < last; i++)
        if (threads[i].state == State::at_warp) settle_warp(first, threads[i]);
}

void run_block(Random& random, bool shuffled) {
    ready.clear();
    live = thread_count;
    at_block = 0;
    uint3 index = {0, 0, 0};
    for (uint32_t i = 0; i < thread_count; i++) {
        Thread& t = threads[i];
        t.state = State::ready;
        t.index = index;
        t.stack = nullptr;
        t.group = 0;
        t.copies.clear();
        ready.push_back(i);
        if (++index.x == blockDim.x) {
            index.x = 0;
            if (++index.y == blockDim.y) index.y = 0, index.z++;
        }
    }
    std::vector<uint32_t> round;
    int idle = 0;
    while (live > 0 && fault.empty()) {
        if (ready.empty()) {
            for (uint32_t i = 0; i < thread_count; i++)
                if (threads[i].state == State::at_block || threads[i].state == State::at_warp) {
                    fail(threads[i].state == State::at_block ? "waits at a block's barrier that others never reach"
                                                             : "waits for lanes of its warp that never come", i);
                    break;
                }
            break;
        }
        round.swap(ready);
        ready.clear();
        if (shuffled) random.shuffle(round);
        bool moved = false;
        for (uint32_t i : round) {
            Thread& t = threads[i];
            if (t.stack == nullptr) {
                if ((t.stack = take_stack()) == nullptr) return fail("no memory for a stack", i);
                prepare(t.context, t.stack, stack_bytes, run_thread);
            }
            self = i;
            threadIdx = t.index;
            change(scheduler, t.context);
            switch (t.state) {
            case State::ready: break; // cannot be: a thread gives up its turn with a reason
            case State::paused: release(i); continue;
            case State::at_block: at_block++; break;
            case State::at_warp: settle_warp(i & ~31u, t); break;
            case State::ended:
                live--;
                stacks.push_back(t.stack);
                t.stack = nullptr;
                settle_ended(i);
                break;
            }
            moved = true;
            if (!fault.empty()) break;
        }
        settle_block();
        idle = moved ? 0 : idle + 1;
        if (idle == idle_rounds) fail("waits in a loop for what never comes", round[0]);
    }
    // After a fault threads are dropped where they are: device code owns nothing that must be given back.
    for (uint32_t i = 0; i < thread_count; i++)
        if (threads[i].stack != nullptr) stacks.push_back(threads[i].stack), threads[i].stack = nullptr;
}

const Kernel* find(const char* name) {
    for (const Kernel& k : kernels())
        if (std::strcmp(k.name, name) == 0) return &k;
    return nullptr;
}

int refuse(const std::string& why) {
    problem = why;
    return 1;
}

} // namespace

void enroll(const char* name, void (*function)(), Invoke invoke, const uint32_t* sizes, int count) {
    kernels().push_back(Kernel{name, function, invoke, std::vector<uint32_t>(sizes, sizes + count)});
}

unsigned char* dynamic_shared() { return shared_memory; }
uint32_t lane() { return self & 31; }
uint64_t clock() { return ticks += 1000; }
void pause() { leave(State::paused); }

uint32_t sync_block(bool predicate, uint32_t* count) {
    Thread& t = threads[self];
    t.predicate = predicate;
    leave(State::at_block);
    *count = t.answered_threads;
    return t.answer;
}

uint64_t sync_warp(WarpOp op, uint32_t mask, uint64_t value, uint32_t source) {
    Thread& t = threads[self];
    if (!(mask >> lane() & 1)) fail("the mask of a warp's operation does not hold the caller", self);
    t.op = op;
    t.mask = mask;
    t.value = value;
    t.source = source;
    leave(State::at_warp);
    return t.result;
}

void copy_async(void* to, const void* from, uint32_t bytes) {
    Thread& t = threads[self];
    if (reinterpret_cast<uintptr_t>(to) % bytes != 0 || reinterpret_cast<uintptr_t>(from) % bytes != 0)
        fail("an asynchronous copy is not aligned to its size", self);
    t.copies.push_back(Copy{to, from, bytes, t.group});
}
void copy_async_commit() { threads[self].group++; }
void copy_async_wait(uint32_t groups) {
    Thread& t = threads[self];
    size_t kept = 0;
    for (const Copy& c : t.copies)
        if (c.group + groups < t.group) std::memcpy(c.to, c.from, c.bytes);
        else t.copies[kept++] = c;
    t.copies.resize(kept);
}

} // namespace sealc2::emu

extern "C" {

__attribute__((visibility("default"))) const char* const* emu_kernels(void) {
    static const std::vector<const char*> names = [] {
        std::vector<const char*> all;
        for (const auto& k : sealc2::emu::kernels()) all.push_back(k.name);
        all.push_back(nullptr);
        return all;
    }();
    return names.data();
}

__attribute__((visibility("default"))) int emu_parameters(const char* name, uint32_t* sizes, int capacity) {
    const auto* k = sealc2::emu::find(name);
    if (k == nullptr) return -1;
    for (int i = 0; i < capacity && i < int(k->sizes.size()); i++) sizes[i] = k->sizes[i];
    return int(k->sizes.size());
}

__attribute__((visibility("default"))) const char* emu_error(void) { return sealc2::emu::problem.c_str(); }

__attribute__((visibility("default"))) int emu_launch(const char* name, const uint32_t grid[3], const uint32_t block[3],
                                                      uint32_t shared, void** arguments, uint64_t seed) {
    using namespace sealc2::emu;
    const Kernel* k = find(name);
    if (k == nullptr) return refuse(std::string(name) + ": no such kernel");
    const uint64_t per_block = uint64_t(block[0]) * block[1] * block[2];
    if (block[0] == 0 || block[1] == 0 || block[2] == 0 || block[0] > most_threads || block[1] > most_threads || block[2] > 64 || per_block > most_threads)
        return refuse(std::string(name) + ": want blocks of 1 to 1024 threads");
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535)
        return refuse(std::string(name) + ": want a grid of 1 to (2^31 - 1, 65535, 65535) blocks");
    if (shared > most_shared) return refuse(std::string(name) + ": want at most 227 KiB of shared memory");
    const std::lock_guard<std::mutex> lock(turn);
    kernel = k;
    ::sealc2::emu::arguments = arguments;
    fault.clear();
    thread_count = uint32_t(per_block);
    gridDim = dim3{grid[0], grid[1], grid[2]};
    blockDim = dim3{block[0], block[1], block[2]};
    Random random{seed};
    // Blocks of a seeded launch run in steps of a number without a common factor, from a random one on: every order
    // that matters for two blocks occurs, and nothing as long as the grid is kept.
    const uint64_t blocks = uint64_t(grid[0]) * grid[1] * grid[2];
    uint64_t at = 0, step = 1;
    if (seed != 0) {
        at = random.next() % blocks;
        step = random.next() % blocks | 1;
        auto common = [](uint64_t a, uint64_t b) {
            while (b != 0) std::swap(a %= b, b);
            return a;
        };
        while (common(step, blocks) != 1) step += 2;
    }
    for (uint64_t done = 0; done < blocks && fault.empty(); done++) {
        blockIdx = uint3{uint32_t(at % grid[0]), uint32_t(at / grid[0] % grid[1]), uint32_t(at / grid[0] / grid[1])};
        at = uint64_t(((unsigned __int128)at + step) % blocks);
        std::memset(shared_memory, 0xa5, shared + fence_bytes);
        run_block(random, seed != 0);
        for (uint32_t i = 0; i < fence_bytes; i++)
            if (shared_memory[shared + i] != 0xa5) {
                fail("a write behind the dynamic shared memory", 0);
                break;
            }
    }
    if (fault.empty()) return 0;
    return refuse(fault);
}
}
