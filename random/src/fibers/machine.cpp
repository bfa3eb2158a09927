// Runs the kernels of a program as a GPU would: each thread of a block is a fiber, which goes on until it waits for others.
//
// The program reads its launches from the standard input and writes what became of each to the standard output, in words of the machine's order:
//
//     launch   the kernel's number, the threads of a block along x, y and z, the blocks along x, the number of buffers, the bytes of each, the bytes of the parameter block, and then the buffers and the block
//     outcome  0 and the buffers, or the length of a text and the text
//
// A launch has a process of its own, so that one that ends badly or not at all is the outcome of this launch alone. Buffers lie before a page that nobody may touch. A barrier that not all threads of the block come to, and an
// operation of a warp that not all lanes of its mask come to, end a launch: neither is let pass because a thread has ended, which GPUs do.

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

// The linker's names for the section of `__shared__`, if a kernel has any.
extern "C" __attribute__((weak)) char __start_workgroup_memory[];
extern "C" __attribute__((weak)) char __stop_workgroup_memory[];

uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace fibers {

constexpr unsigned WARP = 32, STACK = 256 * 1024, MOST_THREADS = 1024;
// Kernels take milliseconds of a processor.
constexpr unsigned SECONDS = 5;
constexpr size_t TEXT = 1024;
// What workgroup memory holds before anything is written to it.
constexpr int UNWRITTEN = 0x5a;

enum class State { Ready, AtBarrier, InWarp, Ended };

struct Fiber {
    ucontext_t context;
    State state;
    // What it waits for in its warp.
    const char* operation;
    unsigned mask;
    unsigned long long value;
    Gathered gathered;
};

static Fiber all[MOST_THREADS];
static unsigned count, current;
static ucontext_t scheduler;
static char* stacks;
static char* outcome_text;
static void (*run_thread)(void**);
static void** arguments;

// Ends the launch.
[[noreturn]] static void fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(outcome_text, TEXT, format, values);
    va_end(values);
    _exit(1);
}

// Where in a text something is, as the compiler's checks say it.
struct Place {
    const char* file;
    unsigned line, column;
};

[[noreturn]] static void undefined(const Place& place, const char* words) {
    fail("line %u of its text, column %u: %s", place.line, place.column, words);
}

static size_t whole_pages(size_t bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

// Memory of the launches' processes and of this one, which ends before a page that nobody may touch.
static char* memory(size_t bytes) {
    const size_t held = whole_pages(bytes + 64), page = whole_pages(1);
    char* at = static_cast<char*>(mmap(nullptr, held + page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (at == MAP_FAILED || mprotect(at + held, page, PROT_NONE) != 0) {
        perror("memory");
        exit(1);
    }
    // The widest vectors are aligned to 32 bytes.
    return at + (held - bytes) / 64 * 64;
}

static void wait_as(State state) {
    all[current].state = state;
    swapcontext(&all[current].context, &scheduler);
}

void barrier() { wait_as(State::AtBarrier); }

const Gathered& together(const char* operation, unsigned mask, unsigned long long value) {
    Fiber& fiber = all[current];
    fiber.operation = operation;
    fiber.mask = mask;
    fiber.value = value;
    wait_as(State::InWarp);
    return fiber.gathered;
}

unsigned lane() { return current % WARP; }

static void thread() {
    run_thread(arguments);
    all[current].state = State::Ended;
}

static void begin(unsigned number) {
    Fiber& fiber = all[number];
    fiber.state = State::Ready;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks + size_t(number) * STACK + whole_pages(1);
    fiber.context.uc_stack.ss_size = STACK - whole_pages(1);
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, thread, 0);
}

static void resume(unsigned number) {
    current = number;
    const unsigned x = blockDim.x, y = blockDim.y;
    threadIdx = {number % x, number / x % y, number / x / y};
    swapcontext(&scheduler, &all[number].context);
}

// Lets the lanes go on that wait with this one, if all are there.
static bool release_warp(unsigned number) {
    const Fiber& fiber = all[number];
    const unsigned first = number / WARP * WARP, lanes = count - first < WARP ? count - first : WARP;
    // A mask may name lanes that the block does not have.
    const unsigned mask = lanes == WARP ? fiber.mask : fiber.mask & ((1u << lanes) - 1u);
    if ((mask >> (number - first) & 1u) == 0u) {
        fail("thread %u is not in the mask %#x of its own %s", number, fiber.mask, fiber.operation);
    }
    Gathered gathered = {};
    gathered.lanes = mask;
    for (unsigned i = 0; i < lanes; i++) {
        const Fiber& other = all[first + i];
        if ((mask >> i & 1u) == 0u) {
            continue;
        }
        if (other.state != State::InWarp || other.mask != fiber.mask || strcmp(other.operation, fiber.operation) != 0) {
            return false;
        }
        gathered.values[i] = other.value;
    }
    for (unsigned i = 0; i < lanes; i++) {
        if (mask >> i & 1u) {
            all[first + i].gathered = gathered;
            all[first + i].state = State::Ready;
        }
    }
    return true;
}

static unsigned in_state(State state) {
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) {
        found += all[i].state == state;
    }
    return found;
}

// Lets those go on that have waited for each other; whether there were any.
static bool release() {
    if (in_state(State::AtBarrier) == count) {
        for (unsigned i = 0; i < count; i++) {
            all[i].state = State::Ready;
        }
        return true;
    }
    bool some = false;
    for (unsigned i = 0; i < count; i++) {
        some |= all[i].state == State::InWarp && release_warp(i);
    }
    return some;
}

[[noreturn]] static void stuck() {
    const char* operation = "no operation of a warp";
    for (unsigned i = 0; i < count; i++) {
        if (all[i].state == State::InWarp) {
            operation = all[i].operation;
        }
    }
    fail("of %u threads of block %u, %u have ended, %u wait at a barrier and %u in a warp, the last of these in %s", count,
         blockIdx.x, in_state(State::Ended), in_state(State::AtBarrier), in_state(State::InWarp), operation);
}

static void block(unsigned number) {
    blockIdx = {number, 0, 0};
    if (__start_workgroup_memory != nullptr) {
        memset(__start_workgroup_memory, UNWRITTEN, size_t(__stop_workgroup_memory - __start_workgroup_memory));
    }
    for (unsigned i = 0; i < count; i++) {
        begin(i);
    }
    // Threads go on by turns from the first and from the last: what needs a barrier shows without it in one of both.
    for (unsigned round = number; in_state(State::Ended) < count; round++) {
        for (unsigned i = 0; i < count; i++) {
            const unsigned next = round % 2 == 0 ? i : count - 1 - i;
            if (all[next].state == State::Ready) {
                resume(next);
            }
        }
        if (in_state(State::Ended) < count && !release()) {
            stuck();
        }
    }
}

struct Launch {
    unsigned kernel;
    uint3 threads;
    unsigned blocks, buffers;
};

static void grid(const Launch& launch) {
    rlimit limit = {SECONDS, SECONDS + 1};
    setrlimit(RLIMIT_CPU, &limit);
    limit = {0, 0};
    setrlimit(RLIMIT_CORE, &limit);
    blockDim = launch.threads;
    count = blockDim.x * blockDim.y * blockDim.z;
    if (count == 0 || count > MOST_THREADS) {
        fail("a block of %u threads", count);
    }
    gridDim = {launch.blocks, 1, 1};
    run_thread = kernels[launch.kernel].run;
    for (unsigned i = 0; i < launch.blocks; i++) {
        block(i);
    }
}

// The launch in a process of its own; a text if it fails.
static const char* outcome(const Launch& launch) {
    outcome_text[0] = 0;
    const pid_t child = fork();
    if (child == 0) {
        grid(launch);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return "there is no process for it";
    }
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        if (signal == SIGXCPU || signal == SIGKILL) {
            snprintf(outcome_text, TEXT, "it does not end within %u s", SECONDS);
        } else {
            snprintf(outcome_text, TEXT, "it ends by a signal: %s", strsignal(signal));
        }
    }
    return outcome_text;
}

static bool read_all(void* to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes; }

static unsigned word() {
    unsigned value = 0;
    if (!read_all(&value, sizeof value)) {
        fputs("a launch is not whole\n", stderr);
        exit(1);
    }
    return value;
}

static void write_word(size_t value) {
    const unsigned word = unsigned(value);
    fwrite(&word, sizeof word, 1, stdout);
}

// Reads a launch, runs it and writes its outcome.
static void serve(unsigned kernel) {
    Launch launch;
    launch.kernel = kernel;
    launch.threads.x = word();
    launch.threads.y = word();
    launch.threads.z = word();
    launch.blocks = word();
    launch.buffers = word();
    constexpr unsigned MOST_BUFFERS = 64;
    unsigned sizes[MOST_BUFFERS + 1];
    void* places[MOST_BUFFERS + 1];
    if (kernel >= kernel_count || launch.buffers > MOST_BUFFERS) {
        fputs("a launch of something else\n", stderr);
        exit(1);
    }
    for (unsigned i = 0; i <= launch.buffers; i++) {
        sizes[i] = word();
    }
    for (unsigned i = 0; i <= launch.buffers; i++) {
        places[i] = memory(sizes[i]);
        if (!read_all(places[i], sizes[i])) {
            fputs("a launch is not whole\n", stderr);
            exit(1);
        }
    }
    arguments = places;
    const char* text = outcome(launch);
    write_word(strlen(text));
    fputs(text, stdout);
    for (unsigned i = 0; i < launch.buffers && text[0] == 0; i++) {
        fwrite(places[i], 1, sizes[i], stdout);
    }
    // What a launch that fails may yet write must not come twice.
    fflush(stdout);
}

} // namespace fibers

// What the compiler's checks call, with what begins with a place. The library that comes with them would write to the standard error and go on.
#define CHECK(name, words)                                                                                             \
    extern "C" [[noreturn]] void __ubsan_handle_##name##_abort(const fibers::Place* place) {                           \
        fibers::undefined(*place, words);                                                                              \
    }
CHECK(add_overflow, "a signed sum overflows")
CHECK(sub_overflow, "a signed difference overflows")
CHECK(mul_overflow, "a signed product overflows")
CHECK(negate_overflow, "the negative of the least number")
CHECK(divrem_overflow, "a quotient by zero, or of the least number by -1")
CHECK(shift_out_of_bounds, "a shift by too much, or of a signed number beyond its bits")
CHECK(out_of_bounds, "an index outside of an array")
CHECK(float_cast_overflow, "a float becomes an integer that cannot hold it")
CHECK(load_invalid_value, "a bool that is neither 0 nor 1")
CHECK(type_mismatch_v1, "an address is not aligned to what is there")

int main() {
    using namespace fibers;
    const size_t held = size_t(MOST_THREADS) * STACK;
    stacks = static_cast<char*>(
        mmap(nullptr, held, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    outcome_text = memory(TEXT);
    if (stacks == MAP_FAILED) {
        perror("stacks");
        return 1;
    }
    for (unsigned i = 0; i < MOST_THREADS; i++) {
        // Below each stack, where it would grow into the next one.
        mprotect(stacks + size_t(i) * STACK, whole_pages(1), PROT_NONE);
    }
    unsigned kernel = 0;
    while (fread(&kernel, sizeof kernel, 1, stdin) == 1) {
        serve(kernel);
    }
    return 0;
}
