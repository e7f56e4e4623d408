/** All that the usual line is made of. */
const PRINTABLE_LINE = /^[\x20-\x7e]*\n$/
/** What steers terminals, or turns a text round in them; JSON escapes only what is below the space. */
const TERMINAL_CONTROL = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * A line of JSON in which nothing steers the terminal that it may be looked at in: names come from clients.
 *
 * @param escape what stands before the four digits of each; the text is the same to who reads the JSON
 */
export function escapeTerminalControl(line: string, escape = '\\u'): string {
  if (PRINTABLE_LINE.test(line)) return line
  return line.replace(TERMINAL_CONTROL, character => character.split('').map(unit =>
    escape + unit.charCodeAt(0).toString(16).padStart(4, '0')).join(''))
}
