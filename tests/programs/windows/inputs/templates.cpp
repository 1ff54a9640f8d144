// Work for a compiler, without a header: recursive instantiations, long classes, loops to unroll.
template <int N, int M> struct Cell {
  static constexpr unsigned value = (Cell<N - 1, M>::value * 31 + Cell<N, M - 1>::value) & 0xffff;
};
template <int M> struct Cell<0, M> {
  static constexpr unsigned value = M;
};
template <int N> struct Cell<N, 0> {
  static constexpr unsigned value = N;
};
template <> struct Cell<0, 0> {
  static constexpr unsigned value = 1;
};

template <typename First, typename... Rest> struct List {
  First first;
  List<Rest...> rest;
  int sum() const { return static_cast<int>(first) + rest.sum(); }
};
template <typename First> struct List<First> {
  First first;
  int sum() const { return static_cast<int>(first); }
};

template <int N> int work(int x) {
  int table[N + 1];
  for (int i = 0; i <= N; i++) table[i] = x * i + static_cast<int>(Cell<N, 40>::value);
  int sum = work<N - 1>(x + 1);
  for (int value : table) sum += value;
  return sum + List<char, short, int, long, float, double>{}.sum();
}
template <> inline int work<0>(int x) { return x; }

int main(int count, char**) { return work<50>(count); }
