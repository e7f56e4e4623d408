import { symbols } from 'pino'
import type { Logger } from 'pino'

// Once: where the package is loaded, each is behind an accessor.
const asJsonSym: typeof symbols.asJsonSym = symbols.asJsonSym
const chindingsSym: typeof symbols.chindingsSym = symbols.chindingsSym
const lsCacheSym: typeof symbols.lsCacheSym = symbols.lsCacheSym

type AsJson = (
  this: Logger, fields: object, message: string | undefined, level: number, time: string,
) => string

/** Those parts of a logger that a line is made of (https://getpino.io/#/docs/api?id=pino-symbols). */
interface LineParts {
  /** Per level, how a line begins: `{"level":"info"`. */
  readonly [lsCacheSym]: Readonly<Record<number, string>>
  /** The fields of a child logger: `,"worker":1`. */
  readonly [chindingsSym]: string
  [asJsonSym]: AsJson
}

/**
 * Makes a logger, and the children that it will have, write lines of plain values
 * with one `JSON.stringify`. pino's own way is one for each name and each value,
 * 12 kB of garbage for a line; it stays in use for all other lines.
 */
export function useFastLineWriter(log: Logger): void {
  const parts = log as unknown as LineParts
  const asJson = parts[asJsonSym]
  parts[asJsonSym] = function (this: Logger, fields, message, level, time) {
    if (!isPlain(fields)) return escapeTerminalControl(asJson.call(this, fields, message, level, time))
    const { [lsCacheSym]: beginnings, [chindingsSym]: own } = this as unknown as LineParts
    const text = JSON.stringify(fields)
    const rest = text === '{}' ? '' : `,${text.slice(1, -1)}`
    const said = message === undefined ? '' : `,"msg":${JSON.stringify(message)}`
    return escapeTerminalControl(`${beginnings[level]}${time}${own}${rest}${said}}\n`)
  }
}

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

/** Nothing in it that pino would treat in a way of its own. */
function isPlain(fields: object): boolean {
  for (const name in fields) {
    switch (typeof (fields as Record<string, unknown>)[name]) {
      case 'string':
      case 'number':
      case 'boolean':
      case 'undefined':
        continue
      default:
        return false
    }
  }
  return true
}
