import t from 'tap'
import { faultsOf } from './faults.ts'

t.test('each operator, condition, number, truth value and call of a source has a fault', async t => {
  const faulty = (source: string) => faultsOf(source).map(({ start, end, text }) => source.slice(0, start) + text + source.slice(end))
  for (const [source, ...expected] of [
    ['a < b', 'a <= b'],
    ['a === b && c', 'a === b || c', 'a !== b && c'],
    ['const x: number = a ?? 1', 'const x: number = a && 1', 'const x: number = a ?? 2'],
    ['if (a) b()', 'if (!(a)) b()', 'if (a) void 0'],
    ['x = a ? true : null', 'x = !(a) ? true : null', 'x = a ? false : null'],
    ['n += 1', 'n -= 1', 'n += 2'],
    ['type A = 1 | true'],
  ] as const) t.strictSame(faulty(source), expected, source)
})
