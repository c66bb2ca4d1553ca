// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, atomic writes that leave nothing behind, hashes, the data folder.
#include "sim/base/file.hpp"

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "sim/base/error.hpp"

namespace scapesim {
namespace {

namespace fs = std::filesystem;

// A fresh folder that is removed again.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "scapesim-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) FAIL("no temporary folder");
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_))
      list.push_back(entry.path().filename().string());
    return list;
  }

 private:
  fs::path path_;
};

std::string plain_read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("a file written piece by piece appears when it is whole, or never") {
  const Folder folder;
  const fs::path path = folder / "long.txt";
  std::string whole;
  {
    FileWriter writer(path);
    for (int i = 0; i < 200'000; ++i) {
      const std::string line = "line " + std::to_string(i) + "\n";  // more than is held back
      whole += line;
      writer.write(line);
    }
    CHECK_FALSE(fs::exists(path));
    writer.commit();
  }
  CHECK(read_file(path, "test") == whole);
  {
    FileWriter given_up(path);
    given_up.write("something else");
  }
  CHECK(read_file(path, "test") == whole);
  CHECK(folder.names() == std::vector<std::string>{"long.txt"});
  CHECK_THROWS_AS(FileWriter(folder / "no such folder/x"), InputError);
}

TEST_CASE("what is written is read back byte for byte") {
  const Folder folder;
  std::string content(200000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 % 256);
  write_file(folder / "a", content);
  REQUIRE(read_file(folder / "a", "test") == content);
  write_file(folder / "a", "");
  REQUIRE(read_file(folder / "a", "test").empty());
  REQUIRE(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("a missing file is an input error with purpose and nearest name") {
  const Folder folder;
  write_file(folder / "vista-llama.toml", "x");
  const std::string path = (folder / "vista-lama.toml").string();
  REQUIRE_THROWS_WITH(read_file(path, "scenario"),
                      path +
                          ": scenario: cannot read: No such file or directory (did you mean "
                          "\"vista-llama.toml\"?)");
}

TEST_CASE("a folder is no file to read or write") {
  const Folder folder;
  fs::create_directory(folder / "sub");
  REQUIRE_THROWS_AS(read_file(folder / "sub", "scenario"), InputError);
  REQUIRE_THROWS_WITH(write_file(folder / "sub", "x"), Catch::Contains("it is a folder"));
  REQUIRE(folder.names() == std::vector<std::string>{"sub"});
}

TEST_CASE("input without end is refused before memory is gone") {
  REQUIRE_THROWS_WITH(read_file("/dev/zero", "scenario"), Catch::Contains("larger than 256 MiB"));
}

TEST_CASE("a caller's own limit is the last size that is read") {
  const Folder folder;
  write_file(folder / "a", "1234");
  REQUIRE(read_file(folder / "a", "test", 4) == "1234");
  REQUIRE_THROWS_AS(read_file(folder / "a", "test", 3), InputError);
}

TEST_CASE("writing into a missing folder says so and creates nothing") {
  const Folder folder;
  REQUIRE_THROWS_WITH(write_file(folder / "no/file.json", "x"),
                      Catch::Contains("there is no folder"));
  REQUIRE(folder.names().empty());
}

TEST_CASE("a failed write keeps the old file and leaves no temporary behind") {
  const Folder folder;
  write_file(folder / "result.json", "old");
  // A file size limit makes the system refuse the 5th byte, as a full disk would.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tiny = before;
  tiny.rlim_cur = 4;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tiny) == 0);
  std::string message;
  try {
    write_file(folder / "result.json", "much longer than four bytes");
  } catch (const InputError& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE_THAT(message, Catch::Contains("cannot write: File too large"));
  REQUIRE(plain_read(folder / "result.json") == "old");
  REQUIRE(folder.names() == std::vector<std::string>{"result.json"});
}

TEST_CASE("a full device is an error, and a device stays a device") {
  REQUIRE_THROWS_WITH(write_file("/dev/full", "x"), Catch::Contains("No space left on device"));
  write_file("/dev/null", "x");
  REQUIRE(fs::is_character_file("/dev/null"));
}

TEST_CASE("an existing file keeps its permissions, a new one follows the umask") {
  const Folder folder;
  const mode_t before = ::umask(027);
  write_file(folder / "new", "x");
  ::umask(before);
  REQUIRE(fs::status(folder / "new").permissions() == fs::perms(0640));
  fs::permissions(folder / "new", fs::perms(0604));
  write_file(folder / "new", "y");
  REQUIRE(fs::status(folder / "new").permissions() == fs::perms(0604));
}

TEST_CASE("writing through a symbolic link changes its target and keeps the link") {
  const Folder folder;
  write_file(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  write_file(folder / "link", "new");
  REQUIRE(fs::is_symlink(folder / "link"));
  REQUIRE(plain_read(folder / "target") == "new");
}

TEST_CASE("a name without folder is written to the working folder") {
  const Folder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder / "");
  write_file("plain", "x");
  fs::current_path(before);
  REQUIRE(plain_read(folder / "plain") == "x");
}

TEST_CASE("the content hash is FNV-1a with its published test values") {
  REQUIRE(content_hash("") == "cbf29ce484222325");
  REQUIRE(content_hash("a") == "af63dc4c8601ec8c");
  REQUIRE(content_hash("foobar") == "85944171f73967e8");
}

TEST_CASE("the data folder is SCAPESIM_DATA when set, refused when it holds no profiles") {
  const Folder folder;
  REQUIRE(::setenv("SCAPESIM_DATA", (folder / "").c_str(), 1) == 0);
  REQUIRE_THROWS_WITH(data_folder(),
                      Catch::Contains("SCAPESIM_DATA: no folder with calib/profiles"));
  fs::create_directories(folder / "calib/profiles");
  REQUIRE(data_folder() == folder / "");
  ::unsetenv("SCAPESIM_DATA");
  REQUIRE(fs::is_directory(data_folder() / "calib/profiles"));
}

}  // namespace
}  // namespace scapesim
