import fc from 'fast-check'

/** White space of all four kinds, often none. */
const space = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  fc.array(fc.constantFrom(' ', '\n', '\r', '\t'), { minLength: 1, maxLength: 3 }).map(all => all.join('')))

/** Numbers that serializers rarely write: 1.0, 1e5, -0, integers above 2^53. */
export const numberText = fc.oneof(
  fc.constantFrom('1.0', '1e5', '-0', '0', '12345678901234567890123', '1E+2', '0.10', '-1.5e-7', '1e400'),
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?$/))

const character = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).map(text => JSON.stringify(text).slice(1, -1)),
  fc.constantFrom('\\n', '\\"', '\\\\', '\\/', '\\b', '\\u0041', '\\u00e9', '\\ud83d\\ude00', '\\ud800'),
  fc.constantFrom('\u007f', '😀', 'é', '€', 'aGVsbG8='.repeat(9)))

/** Strings with needless escapes, lone surrogates and characters of one to four bytes. */
export const stringText = fc.array(character, { maxLength: 6 }).map(parts => `"${parts.join('')}"`)

/** Names of members that the scan watches. */
export const NAMES = ['model', 'stream', 'stream_options', 'größe']

/**
 * The watched names, plain and escaped, beside others. None holds a backslash of
 * its own: once V8 has seen such a key, its JSON.parse, by which the tests judge,
 * can take other escaped keys for it (nodejs/node#63785).
 */
const keyText = fc.oneof(
  fc.constantFrom(...NAMES.map(name => JSON.stringify(name))),
  fc.constantFrom('"mod\\u0065l"', '"\\u006d\\u006Fd\\u0065\\u006c"'),
  fc.constantFrom('"stream\\u005foptions"', '"gr\\u00f6ße"'),
  fc.constantFrom('"Model"', '"mode"', '"models"', '"stream_option"', '"__proto__"', '""'),
  stringText.filter(text => !(JSON.parse(text) as string).includes('\\')))

/** A run of members or elements, with white space wherever it may stand. */
function list(items: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const spaced = fc.tuple(space, items, space).map(parts => parts.join(''))
  const some = fc.array(spaced, { minLength: 1, maxLength: 5 }).map(all => all.join(','))
  return fc.oneof({ weight: 1, arbitrary: space }, { weight: 6, arbitrary: some })
}

const { value, object } = fc.letrec<{ value: string; object: string }>(tie => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom('true', 'false', 'null'),
    numberText,
    stringText,
    list(tie('value')).map(inside => `[${inside}]`),
    tie('object')),
  object: list(
    fc.tuple(keyText, space, fc.constant(':'), space, tie('value')).map(parts => parts.join(''))
  ).map(inside => `{${inside}}`)
}))

const around = (text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(space, text, space).map(parts => parts.join(''))

/** Any JSON text. */
export const jsonText = around(value)
/** A JSON text whose root is an object, in which watched names are frequent, also twice. */
export const objectText = around(object)
