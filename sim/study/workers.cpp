// SPDX-License-Identifier: Apache-2.0
// Items are dealt by a counter in shared memory, answers come back over one pipe per worker.
#include "sim/study/workers.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <new>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "sim/base/check.hpp"

namespace scapesim::study {
namespace {

constexpr std::uint64_t kIdle = ~std::uint64_t{0};

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// What the caller and its workers share.
struct Board {
  std::atomic<std::uint64_t> next{0};  ///< position of the next item
  std::atomic<bool> stop{false};
};

/// One page of memory that stays shared across fork.
class SharedBoard {
 public:
  SharedBoard() {
    void* memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("mmap");
    board_ = new (memory) Board;
  }
  ~SharedBoard() { ::munmap(board_, sizeof(Board)); }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  Board* operator->() const { return board_; }

 private:
  Board* board_;
};

/// Before the bytes of an answer. A beginning tells what a worker works on, should it die.
struct Heading {
  enum class Kind : std::uint64_t { begins, answer, fault };
  Kind kind;
  std::uint64_t item;
  std::uint64_t length;
};

/// False when nobody reads any more.
bool send(int pipe, const void* bytes, std::size_t length) {
  const char* next = static_cast<const char*>(bytes);
  while (length > 0) {
    const ssize_t written = ::write(pipe, next, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    next += written;
    length -= static_cast<std::size_t>(written);
  }
  return true;
}

bool send(int pipe, Heading::Kind kind, std::uint64_t item, const std::string& text) {
  const Heading heading{kind, item, text.size()};
  return send(pipe, &heading, sizeof heading) && send(pipe, text.data(), text.size());
}

/// A worker's life; ends the process without running the caller's destructors or exit handlers.
[[noreturn]] void serve(int pipe, std::span<const std::uint64_t> items, const Work& work,
                        const SharedBoard& board, pid_t caller) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != caller) ::_exit(1);
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  while (!board->stop) {
    const std::uint64_t position = board->next++;
    if (position >= items.size()) break;
    const std::uint64_t item = items[position];
    if (!send(pipe, Heading::Kind::begins, item, "")) break;
    bool sent = false;
    try {
      sent = send(pipe, Heading::Kind::answer, item, work(item));
    } catch (const std::exception& error) {
      send(pipe, Heading::Kind::fault, item, error.what());
    }
    if (!sent) break;
  }
  ::_exit(0);
}

struct Message {
  Heading heading;
  std::string text;
};

/// The caller's end of one worker.
class Worker {
 public:
  Worker(std::span<const std::uint64_t> items, const Work& work, const SharedBoard& board,
         std::span<const Worker> others, const std::function<void()>& begin) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) fail("pipe");
    const pid_t caller = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) {
      const int error = errno;
      ::close(ends[0]);
      ::close(ends[1]);
      errno = error;
      fail("fork");
    }
    if (pid_ == 0) {
      ::close(ends[0]);
      for (const Worker& other : others) ::close(other.pipe_);
      if (begin) begin();
      serve(ends[1], items, work, board, caller);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  ~Worker() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    reap();
  }
  Worker(Worker&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        pipe_(std::exchange(other.pipe_, -1)),
        bytes_(std::move(other.bytes_)),
        item_(other.item_) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool alive() const { return pid_ > 0; }
  int pipe() const { return pipe_; }

  /// Reads what is there; the messages that are whole. Ends when the worker has ended.
  std::vector<Message> receive() {
    constexpr std::size_t kBlock = 65536;
    std::array<char, kBlock> block;
    const ssize_t got = ::read(pipe_, block.data(), block.size());
    if (got < 0 && errno == EINTR) return {};
    if (got < 0) fail("read");
    bytes_.append(block.data(), static_cast<std::size_t>(got));
    std::vector<Message> messages = whole_messages();
    for (const Message& message : messages)
      item_ = message.heading.kind == Heading::Kind::begins ? message.heading.item : kIdle;
    if (got == 0) reap();
    return messages;
  }

  /// How it ended, when that was not by itself.
  std::optional<std::string> death() const {
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0 && item_ == kIdle) return std::nullopt;
    const std::string how =
        WIFSIGNALED(status_)
            ? fmt::format("signal {} ({})", WTERMSIG(status_), ::strsignal(WTERMSIG(status_)))
            : fmt::format("exit code {}", WEXITSTATUS(status_));
    return item_ == kIdle ? fmt::format("a worker ended by {}", how)
                          : fmt::format("a worker ended by {} at item {}", how, item_);
  }

 private:
  std::vector<Message> whole_messages() {
    std::vector<Message> messages;
    std::size_t offset = 0;
    while (bytes_.size() - offset >= sizeof(Heading)) {
      Message message;
      std::memcpy(&message.heading, bytes_.data() + offset, sizeof(Heading));
      if (bytes_.size() - offset - sizeof(Heading) < message.heading.length) break;
      message.text = bytes_.substr(offset + sizeof(Heading), message.heading.length);
      offset += sizeof(Heading) + message.heading.length;
      messages.push_back(std::move(message));
    }
    bytes_.erase(0, offset);
    return messages;
  }

  void reap() {
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    ::close(std::exchange(pipe_, -1));
  }

  pid_t pid_ = 0;
  int pipe_ = -1;
  int status_ = 0;
  std::string bytes_;
  std::uint64_t item_ = kIdle;
};

/// Waits until one of the workers has something to say, or a while.
std::vector<Worker*> ready(std::vector<Worker>& workers) {
  constexpr int kWaitMs = 100;
  std::vector<Worker*> living;
  std::vector<pollfd> polled;
  for (Worker& worker : workers)
    if (worker.alive()) {
      living.push_back(&worker);
      polled.push_back({worker.pipe(), POLLIN, 0});
    }
  if (::poll(polled.data(), polled.size(), kWaitMs) < 0 && errno != EINTR) fail("poll");
  std::vector<Worker*> list;
  for (std::size_t i = 0; i < polled.size(); ++i)
    if (polled[i].revents != 0) list.push_back(living[i]);
  return list;
}

}  // namespace

bool work_on(std::span<const std::uint64_t> items, const Work& work, const Take& take,
             const WorkerOptions& options) {
  std::fflush(nullptr);
  const SharedBoard board;
  std::vector<Worker> workers;
  const std::size_t jobs =
      std::min<std::size_t>(static_cast<std::size_t>(std::max(options.jobs, 1)), items.size());
  workers.reserve(jobs);
  for (std::size_t i = 0; i < jobs; ++i)
    workers.emplace_back(items, work, board, workers, options.begin);
  std::size_t taken = 0;
  while (std::ranges::any_of(workers, &Worker::alive)) {
    for (Worker* worker : ready(workers)) {
      for (Message& message : worker->receive()) {
        if (message.heading.kind == Heading::Kind::fault) throw InternalError(message.text);
        if (message.heading.kind == Heading::Kind::begins) continue;
        take(message.heading.item, std::move(message.text));
        ++taken;
      }
      if (worker->alive()) continue;
      if (const auto death = worker->death()) throw WorkerDied(*death);
    }
    if (options.stop && options.stop()) board->stop = true;
  }
  return taken == items.size();
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace scapesim::study
