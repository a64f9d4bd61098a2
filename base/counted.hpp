#pragma once

namespace elastic {

/// Counts its own lifetime in a number, whose lock its owner holds at both ends.
class Counted {
 public:
  explicit Counted(int& number) : number_(number) { ++number_; }
  ~Counted() { --number_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int& number_;
};

}  // namespace elastic
