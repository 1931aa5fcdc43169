// The compiled LRU replay of kvcache-simulator, timed alone: reads a capacity a line, prints the processor seconds of one
// replay with it. The build defines SIMULATOR as the path of the program that kvcache-simulator ships.
#include <ctime>

#define main simulator_main
#include SIMULATOR
#undef main

int main(int argc, char** argv) {
  const Options options = parse_args(argc, argv);
  const SimulationInput input = load_simulation_input(options);
  std::uint32_t capacity;
  while (std::cin >> capacity) {
    const std::clock_t start = std::clock();
    const Result result = simulate_trie_policy(input, capacity, false, options);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::cout << seconds << " " << result.hit_tokens << std::endl;
  }
}
