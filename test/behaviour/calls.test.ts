import t from 'tap'
import { CALL_LIMITS } from '../../bench/lib/call-limits.ts'
import { countCalls, sumOf } from '../../bench/lib/calls.ts'

t.test('a warm request runs at most the files, functions and calls in CALL_LIMITS', async t => {
  const counted = await countCalls(t.testdir({}))
  for (const kind of ['unary', 'stream', 'translated stream'] as const) {
    const { files, functions, calls } = sumOf(counted[kind])
    const limit = CALL_LIMITS[kind]
    t.ok(files <= limit.files, `${kind}: ${files} files of ${limit.files}`)
    t.ok(functions <= limit.functions, `${kind}: ${functions} functions of ${limit.functions}`)
    t.ok(calls <= limit.calls, `${kind}: ${calls} calls of ${limit.calls}`)
  }
})
