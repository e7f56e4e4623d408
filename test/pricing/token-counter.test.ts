import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { createTokenCounter } from '../../src/pricing/token-counter.ts'
import type { TokenCounterOptions } from '../../src/pricing/token-counter.ts'
import { tokenCount } from '../../src/pricing/tokenizer.ts'
import type { TextSample, GeneratedRun } from '../../src/protocols/events/generated-text.ts'
import { estimateTokens } from '../../src/protocols/request/request-estimate.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'

const count = tokenCount()
const NONE = { content: 0, reasoning: 0, tool: 0 }
const SILENT = new URL('threads/silent.ts', import.meta.url)
const ONE_TOKEN = new URL('threads/one-token.ts', import.meta.url)
const DYING = new URL('threads/dying.ts', import.meta.url)
const PROMPT = Buffer.from('{"messages":[{"role":"user","content":"Hello world, how are you?"}]}')

function counterFor(t: Test, options?: TokenCounterOptions) {
  const counter = createTokenCounter(options)
  t.teardown(() => counter.close())
  return counter
}

function run(kind: GeneratedRun['kind'], text: string, escaped = true): GeneratedRun {
  return { kind, escaped, bytes: Buffer.from(text) }
}

function generated(runs: GeneratedRun[], came?: Partial<TextSample['generatedBytes']>): TextSample {
  const kept = { ...NONE }
  for (const { kind, bytes } of runs) kept[kind] += bytes.length
  return { runs, keptBytes: kept, generatedBytes: { ...kept, ...came } }
}

/** A clock whose timers fire when the test says so. */
class HandClock implements Clock {
  now = 0
  readonly #due: { at: number; callback: () => void }[] = []

  monotonic(): number {
    return this.now
  }

  wall(): number {
    return this.now
  }

  setTimeout(callback: () => void, ms: number): { cancel(): void } {
    const timer = { at: this.now + ms, callback }
    this.#due.push(timer)
    return { cancel: () => void this.#due.splice(this.#due.indexOf(timer), 1) }
  }

  advance(ms: number): void {
    this.now += ms
    for (const timer of this.#due.filter(({ at }) => at <= this.now)) timer.callback()
  }
}

t.test('generated text is counted by kind, without JSON escapes', async t => {
  const counter = counterFor(t)
  const tokens = await counter.generated(
    generated([
      run('reasoning', 'Let me think.'),
      run('content', 'He said \\"\\u00fcml\\u00e4ut\\"\\n'),
      run('content', 'and 日本語'),
      run('tool', '{\\"city\\":\\"Paris\\"}'),
      run('tool', '{ "a" :\r\n 1 }', false),
      run('tool', '{"cut', false),
    ]),
  )
  t.strictSame(tokens, {
    reasoning: count('Let me think.'),
    content: count('He said "ümläut"\n') + count('and 日本語'),
    tool: count('{"city":"Paris"}') + count('{"a":1}') + count('{"cut'),
  })
})

t.test('an empty response is counted without a thread', async t => {
  const counter = counterFor(t, { script: DYING })
  t.strictSame(await counter.generated(generated([])), NONE)
})

t.test('text that was not kept is counted at the rate of the kept text', async t => {
  const counter = counterFor(t)
  const text = 'one two three four '
  const tokens = await counter.generated(
    generated([run('content', text)], { content: text.length * 10, tool: 400 }),
  )
  t.strictSame(tokens, { content: count(text) * 10, reasoning: 0, tool: 100 })
})

t.test('prompts and responses are counted', async t => {
  const counter = counterFor(t)
  t.equal(await counter.prompt(endpointNamed('chat.completions').prompt, PROMPT), 3 + 4 + count('Hello world, how are you?'))
  const answer = Buffer.from('{"choices":[{"message":{"role":"assistant","content":"Fine."}}]}')
  t.equal(await counter.response(endpointNamed('chat.completions').responseMembers, answer), count('Fine.'))
  t.equal(await counter.prompt(endpointNamed('audio.transcriptions').prompt, Buffer.from('--form')), null)
  t.equal(await counter.prompt(endpointNamed('audio.transcriptions').prompt, Buffer.from('{"model":"whisper-1"}')), null)
  t.equal(await counter.prompt(endpointNamed('chat.completions').prompt, Buffer.from('{"messages":')), null)
})

t.test('a prompt of megabytes is counted by a sample, with a fixed number for its images', async t => {
  const counter = counterFor(t)
  const text = 'The quick brown fox jumps over the lazy dog. '.repeat(60_000)
  const picture = `data:image/png;base64,${'iVBORw0KGgo'.repeat(100_000)}`
  const body = (parts: unknown[]) =>
    Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: parts }] }))
  const expected = count(text)
  const plain = (await counter.prompt(endpointNamed('chat.completions').prompt, body([{ type: 'text', text }]))) ?? 0
  t.ok(Math.abs(plain - expected) / expected < 0.02, `${plain} for ${expected}`)
  const with_ =
    (await counter.prompt(endpointNamed('chat.completions').prompt, body([{ text }, { image_url: { url: picture } }]))) ?? 0
  t.ok(Math.abs(with_ - expected - 1000) / expected < 0.02, `${with_} for ${expected} + 1000`)
})

t.test('the event loop runs while the thread counts', async t => {
  const counter = counterFor(t)
  await counter.prompt(endpointNamed('chat.completions').prompt, PROMPT)
  let turns = 0
  let over = false
  const turn = () => {
    turns++
    if (!over) setImmediate(turn)
  }
  setImmediate(turn)
  const text = 'Counting this takes some time. '.repeat(30_000)
  await counter.prompt(endpointNamed('chat.completions').prompt, Buffer.from(JSON.stringify({ messages: [{ content: text }] })))
  over = true
  t.ok(turns > 1, `${turns} turns`)
})

t.test('requests that do not fit in the queue are estimated by their bytes', async t => {
  const counter = counterFor(t, { queue: 100 })
  const counts = await Promise.all(
    Array.from({ length: 1000 }, () => counter.prompt(endpointNamed('chat.completions').prompt, PROMPT)),
  )
  const exact = 3 + 4 + count('Hello world, how are you?')
  t.equal(counts.filter(tokens => tokens === exact).length, 100)
  t.equal(counts.filter(tokens => tokens === estimateTokens(PROMPT)).length, 900)
})

t.test('if more than a megabyte of text waits, further texts are counted by a sample', async t => {
  const counter = counterFor(t, { script: ONE_TOKEN })
  const text = 'x'.repeat(64 * 1024)
  const counts = await Promise.all(Array.from({ length: 100 }, () => counter.generated(generated([run('content', text)]))))
  const whole = counts.filter(({ content }) => content === 1).length
  t.ok(whole === 16 || whole === 17, `${whole} are counted whole`)
  t.equal(counts.filter(({ content }) => content === 16).length, 100 - whole, 'the other texts by 4 kB of 64 kB')
  t.equal((await counter.generated(generated([run('content', text)]))).content, 1, 'no text waits')
})

t.test('if more than a megabyte of bodies waits, further bodies are counted by a sample', async t => {
  const counter = counterFor(t, { script: ONE_TOKEN })
  const body = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: 'word '.repeat(50_000) }] }))
  const { prompt } = endpointNamed('chat.completions')
  const counts = await Promise.all(Array.from({ length: 20 }, () => counter.prompt(prompt, body)))
  const whole = counts.filter(tokens => tokens === 1).length
  t.ok(whole >= 4 && whole <= 5, `${whole} are counted whole`)
  t.equal(counts.filter(tokens => tokens === 62).length, 20 - whole, 'the other bodies by 4 kB of 250 kB')
})

t.test('a sample is not cut inside an escape or a character', async t => {
  const counter = counterFor(t)
  const waiting = Array.from({ length: 20 }, () => counter.generated(generated([run('content', 'word '.repeat(13_000))])))
  const texts = ['\\u00e9'.repeat(10_000), 'x' + '\\n'.repeat(20_000), 'é日'.repeat(12_000)]
  for (const text of texts) {
    const { content } = await counter.generated(generated([run('content', text)]))
    const exact = count(JSON.parse(`"${text}"`) as string)
    t.ok(Math.abs(content - exact) / exact < 0.02, `${content} for ${exact}`)
  }
  await Promise.all(waiting)
})

t.test('requests of a dead thread are estimated by their bytes; after three deaths no thread starts for a minute', async t => {
  const clock = new HandClock()
  const counter = counterFor(t, { script: DYING, clock })
  for (let death = 0; death < 3; death++) {
    t.equal(await counter.prompt(endpointNamed('chat.completions').prompt, PROMPT), estimateTokens(PROMPT))
  }
  /** Without a thread the count is available in the same turn of the event loop. */
  const atOnce = async () => {
    let answered = false
    const tokens = counter.generated(generated([run('content', 'x'.repeat(400))])).then(counted => {
      answered = true
      return counted
    })
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    const early = answered
    t.strictSame(await tokens, { ...NONE, content: 100 })
    return early
  }
  t.equal(await atOnce(), true, 'no thread starts')
  clock.advance(60_001)
  t.equal(await atOnce(), false, 'a thread starts again')
})

t.test('a thread that makes no progress is stopped', async t => {
  const clock = new HandClock()
  const counter = counterFor(t, { script: SILENT, clock, timeout: 1000 })
  const waiting = Promise.all([1, 2, 3].map(() => counter.prompt(endpointNamed('chat.completions').prompt, PROMPT)))
  clock.advance(1000)
  t.strictSame(
    await waiting,
    [1, 2, 3].map(() => estimateTokens(PROMPT)),
  )
})

t.test('a dead thread is restarted', async t => {
  const clock = new HandClock()
  const counter = counterFor(t, { clock, timeout: 5 })
  const first = counter.prompt(endpointNamed('chat.completions').prompt, PROMPT)
  clock.advance(5)
  t.equal(await first, estimateTokens(PROMPT))
  t.equal(await counter.prompt(endpointNamed('chat.completions').prompt, PROMPT), 3 + 4 + count('Hello world, how are you?'))
})

t.test('an idle thread ends after a minute, and the next count starts another', async t => {
  const clock = new HandClock()
  const counter = counterFor(t, { clock })
  const tokens = 3 + 4 + count('Hello world, how are you?')
  const ask = async () => {
    const started = once(process, 'worker') as Promise<[Worker]>
    t.equal(await counter.prompt(endpointNamed('chat.completions').prompt, PROMPT), tokens)
    return (await started)[0]
  }
  const first = await ask()
  const ended = once(first, 'exit')
  clock.advance(50_000)
  t.equal(await counter.prompt(endpointNamed('chat.completions').prompt, PROMPT), tokens)
  clock.advance(50_000)
  t.equal(await counter.prompt(endpointNamed('chat.completions').prompt, PROMPT), tokens, 'the thread was not idle for a minute')
  clock.advance(60_000)
  await ended
  t.not(await ask(), first)
})

t.test('close waits for running counts', async t => {
  const counter = createTokenCounter({ clock: systemClock })
  const last = counter.prompt(endpointNamed('chat.completions').prompt, PROMPT)
  await counter.close()
  t.equal(await last, 3 + 4 + count('Hello world, how are you?'))
  t.equal(await counter.prompt(endpointNamed('chat.completions').prompt, PROMPT), estimateTokens(PROMPT), 'no count starts after close')
  await counter.close()
})
