"""ffmpeg.exe (built by GCC) encodes pictures and sound that it makes itself, on two threads: the same file."""

from harness import MICROSOFTS, MICROSOFTS_PLACE, RUNTIME, ProgramTest, fetch, main

SECONDS = 2
INPUTS = ("-f", "lavfi", "-i", f"testsrc2=size=320x240:rate=25:duration={SECONDS}",
          "-f", "lavfi", "-i", f"sine=frequency=440:duration={SECONDS}")
FILTERS = ("-filter_complex", "[0:v]split[a][b];[b]hflip,scale=160:120[small];[a][small]overlay=10:10,format=yuv420p")
EXACT = ("-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1")


class Ffmpeg(ProgramTest):
    def ffmpeg(self):
        (program,) = fetch("ffmpeg").glob("*.exe")
        return self.place("ffmpeg", program.name)

    def encode(self, name: str, *codecs: str, **more):
        words = [self.ffmpeg(), "-hide_banner", "-loglevel", "error", "-nostdin", *INPUTS, *FILTERS, "-threads", "2",
                 *codecs]
        return self.compare([*words, *EXACT, name], files=(name,), **more)

    def test_h264(self):
        # With a thread for each picture the file depends on how long each takes: beside a load one in ten is another,
        # on the system's heap too. With a thread for each slice it does not.
        self.encode("out.mkv", "-c:v", "libx264", "-preset", "veryfast", "-x264-params", "sliced-threads=1",
                    "-c:a", "flac")

    def test_mpeg4(self):
        self.encode("out.avi", "-c:v", "mpeg4", "-c:a", "mp2")

    def test_on_microsofts_runtime(self):
        self.need_emulator()
        self.place("ucrt-10.0.17763", "ucrtbase.dll")
        result = self.encode("out.avi", "-c:v", "ffv1", "-c:a", "pcm_s16le", WINEDLLOVERRIDES=MICROSOFTS)
        self.assertEqual(result.runtimes[RUNTIME], MICROSOFTS_PLACE)


if __name__ == "__main__":
    main()
