/*
 * A JSON text that may be huge, deep or wrong, written down in a few hundred bytes: JSON in which an object with
 * one of the keys below is an instruction. So a case of a million members can be kept, read and shrunk.
 */

/** JSON, and instructions. */
export type Template = null | boolean | number | string | Template[] | { [key: string]: Template }

type Members = Record<string, Template>

/** Its value `count` times, in a list or as members of an object; `{n}` in keys and strings becomes 0, 1, 2, ... */
const TIMES = '$times'
/** Its value inside `count` lists, or inside `count` objects of one member. */
const DEPTH = '$depth'
/** A string `count` times in one string. */
const LONG = '$long'
/** Text that goes into the JSON as it is. */
const RAW = '$raw'
/** A figure that only the one who responds knows: `input`, `output`. */
const FIGURE = '$figure'

/** What stands for an instruction FIGURE. */
export type Figures = Readonly<Record<string, number>>

/** Of the model, in the bodies of seeds: each target has a name of its own. */
export const MODEL = '$model'

export const times = (count: number, of: Template): Template => ({ [TIMES]: count, of })
export const depth = (count: number, key: string | null, of: Template): Template => ({ [DEPTH]: count, key, of })
export const long = (count: number, of: string): Template => ({ [LONG]: count, of })
export const raw = (text: string): Template => ({ [RAW]: text })
export const figure = (name: string): Template => ({ [FIGURE]: name })

/** The key of its instruction; null = it is plain JSON. */
export function instructionOf(template: Template): string | null {
  if (!isObject(template)) return null
  return [TIMES, DEPTH, LONG, RAW, FIGURE].find(key => Object.hasOwn(template, key)) ?? null
}

export function isObject(template: Template): template is Members {
  return typeof template === 'object' && template !== null && !Array.isArray(template)
}

/** @returns the JSON text that the template stands for */
export function render(template: Template, figures: Figures = {}): string {
  if (Array.isArray(template)) return `[${template.flatMap(item => repeated(item, figures)).join(',')}]`
  if (!isObject(template)) return JSON.stringify(template)
  switch (instructionOf(template)) {
    case TIMES: return repeated(template, figures).join(',')
    case DEPTH: {
      const [open, close] = template['key'] === null ? ['[', ']'] : [`{${JSON.stringify(template['key'])}:`, '}']
      return open.repeat(count(template)) + render(template['of'] ?? null, figures) + close.repeat(count(template))
    }
    case LONG: return JSON.stringify(String(template['of']).repeat(count(template)))
    case RAW: return String(template[RAW])
    case FIGURE: return String(figures[String(template[FIGURE])] ?? 7)
    default: return `{${Object.entries(template).flatMap(([key, value]) => repeated(value, figures, `${JSON.stringify(key)}:`)).join(',')}}`
  }
}

/** @param isJoined may the texts be one, with commas between them? */
function repeated(item: Template, figures: Figures, prefix = '', isJoined = true): string[] {
  if (!isObject(item) || instructionOf(item) !== TIMES) return [prefix + render(item, figures)]
  const text = prefix + render(item['of'] ?? null, figures)
  // As one string, of which a case has millions.
  if (isJoined && !text.includes('{n}')) return [text + `,${text}`.repeat(count(item) - 1)]
  return Array.from({ length: count(item) }, (_, n) => text.replaceAll('{n}', String(n)))
}

/** About the bytes of what it renders, without rendering it. */
export function sizeOf(template: Template): number {
  if (Array.isArray(template)) return template.reduce<number>((sum, item) => sum + sizeOf(item) + 1, 2)
  if (!isObject(template)) return typeof template === 'string' ? template.length + 2 : 5
  switch (instructionOf(template)) {
    case TIMES: return count(template) * (sizeOf(template['of'] ?? null) + 8)
    case DEPTH: return count(template) * (String(template['key'] ?? '').length + 5) + sizeOf(template['of'] ?? null)
    case LONG: return count(template) * String(template['of']).length
    case RAW: return String(template[RAW]).length
    case FIGURE: return 5
    default: return Object.entries(template).reduce((sum, [key, value]) => sum + key.length + 4 + sizeOf(value), 2)
  }
}

/** Lowers its counts until it is about as small as `bytes`. Seeds are small: only counts make a template large. */
export function fit(template: Template, bytes: number): Template {
  let fitted = template
  for (let size = sizeOf(fitted); size > bytes; size = sizeOf(fitted)) {
    const smaller = scaled(fitted, Math.min(0.9, bytes / size))
    if (sizeOf(smaller) === size) break
    fitted = smaller
  }
  return fitted
}

function scaled(template: Template, factor: number): Template {
  if (Array.isArray(template)) return template.map(item => scaled(item, factor))
  if (!isObject(template)) return template
  const key = instructionOf(template)
  const isCounted = key === TIMES || key === DEPTH || key === LONG
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [
    name, isCounted && name === key ? Math.max(1, Math.floor(Number(value) * factor)) : scaled(value, factor),
  ]))
}

function count(instruction: Members): number {
  return Number(instruction[TIMES] ?? instruction[DEPTH] ?? instruction[LONG])
}

/** The texts of the items of a list; of anything else its own text. */
export function renderItems(list: Template, figures: Figures = {}): string[] {
  return Array.isArray(list) ? list.flatMap(item => repeated(item, figures, '', false)) : [render(list, figures)]
}
