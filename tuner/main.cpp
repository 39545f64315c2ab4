#include "tuner/commands/command_line.h"

int main(int argc, char** argv) {
  if (const auto code = tuner::run_helper_process(argc, argv)) return *code;
  return tuner::run_command_line(argc, argv);
}
