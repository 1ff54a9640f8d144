<?php
// Blocks that cross between php, its extensions (each opened with RTLD_DEEPBIND) and the C library.
mt_srand(7);
$words = [];
for ($at = 0; $at < 20000; ++$at) {
  $word = ctype_alpha($letters = chr(97 + mt_rand(0, 25)) . mt_rand(0, 999)) ? $letters : strrev($letters);
  $words[$word] = ($words[$word] ?? 0) + 1;
}
ksort($words);
$text = json_encode($words, JSON_THROW_ON_ERROR);
echo md5($text), ' ', count(json_decode($text, true)), "\n";
echo md5(iconv('UTF-8', 'UTF-16LE', str_repeat("gr\u{fc}n ", 5000))), "\n";
echo count(token_get_all(file_get_contents(__FILE__))), "\n";
echo crc32(gzuncompress(gzcompress(str_repeat($text, 20)))), "\n";
setlocale(LC_ALL, 'C.UTF-8');
bindtextdomain('none', '.');
echo gettext('as it is'), ' ', posix_getpwuid(0)['name'], ' ', date('Y', 86400), "\n";
for ($at = 0; $at < 200; ++$at) {
  $moment = new DateTime("2001-01-01 +$at days", new DateTimeZone('Europe/Berlin'));
  $found[] = preg_replace_callback('/(\d+)-(\d+)/', fn($part) => $part[2] . $part[1], $moment->format('c'));
}
echo md5(implode($found)), ' ', implode(',', get_loaded_extensions()), "\n";
