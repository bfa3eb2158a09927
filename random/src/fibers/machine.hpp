// What a program of kernels and the machine that runs them know of each other.

namespace fibers {

struct Kernel {
    // Runs it as one thread, with a list of pointers to buffers and, behind them, to the parameter block.
    void (*run)(void** arguments);
};

// The program's kernels.
extern const Kernel kernels[];
extern const unsigned kernel_count;

} // namespace fibers
