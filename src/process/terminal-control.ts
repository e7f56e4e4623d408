/** Matches the usual line, which has no special characters. */
const PRINTABLE_LINE = /^[\x20-\x7e]*\n$/
/** Matches characters that control a terminal or reverse its text direction. JSON escapes only the characters below the space. */
const TERMINAL_CONTROL = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * Escapes characters of a JSON line that would control a terminal, because names in it come from clients.
 * @param escape prefix of the four hexadecimal digits; a JSON parser still reads the original text
 */
export function escapeTerminalControl(line: string, escape = '\\u'): string {
  if (PRINTABLE_LINE.test(line)) return line
  return line.replace(TERMINAL_CONTROL, character => character.split('').map(unit =>
    escape + unit.charCodeAt(0).toString(16).padStart(4, '0')).join(''))
}
