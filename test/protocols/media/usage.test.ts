import t from 'tap'
import { readUsage } from '../../../src/protocols/usage/reported-usage.ts'
import { endpointNamed } from '../endpoint-named.ts'
import { doubtful, sound } from '../usage-readings.ts'

t.test('images: output tokens are image tokens unless the details say text', async t => {
  const usage = {
    input_tokens: 50,
    output_tokens: 1056,
    total_tokens: 1106,
    input_tokens_details: { text_tokens: 10, image_tokens: 40 },
  }
  const expected = { inputTokens: 50, inputImageTokens: 40, outputTokens: 1056 }
  t.strictSame(readUsage(endpointNamed('images.generations').usage, usage), sound({ ...expected, outputImageTokens: 1056 }))
  t.strictSame(
    readUsage(endpointNamed('images.edits').usage, { ...usage, output_tokens_details: { image_tokens: 1000, text_tokens: 56 } }),
    sound({ ...expected, outputImageTokens: 1000 }),
  )
  t.strictSame(
    readUsage(endpointNamed('images.edits').usage, { ...usage, output_tokens_details: { text_tokens: 56 } }),
    sound({ ...expected, outputImageTokens: 1000 }),
  )
})

t.test('transcriptions: usage is in tokens or seconds', async t => {
  t.strictSame(
    readUsage(endpointNamed('audio.transcriptions').usage, {
      type: 'tokens',
      input_tokens: 14,
      input_token_details: { text_tokens: 0, audio_tokens: 14 },
      output_tokens: 101,
      total_tokens: 115,
    }),
    sound({ inputTokens: 14, inputAudioTokens: 14, outputTokens: 101 }),
  )
  t.strictSame(readUsage(endpointNamed('audio.transcriptions').usage, { type: 'duration', seconds: 9.5 }), sound({ seconds: 9.5 }))
  t.strictSame(readUsage(endpointNamed('audio.translations').usage, { type: 'duration', seconds: 0 }), sound({ seconds: 0 }))
  for (const [told, seconds] of [[8.470000267028809, 8.47], [1e-100, 0], [5e-324, 0], [0.0005, 0.001]] as const) {
    t.strictSame(readUsage(endpointNamed('audio.translations').usage, { type: 'duration', seconds: told }), sound({ seconds }))
  }
  for (const seconds of [-1, '9', null, undefined, 1e300, NaN]) {
    t.strictSame(
      readUsage(endpointNamed('audio.transcriptions').usage, { type: 'duration', seconds }),
      doubtful({}),
      String(seconds),
    )
  }
})

t.test('transcriptions: Mistral reports seconds and tokens, and vLLM reports usage in the format of chat', async t => {
  const heard = { prompt_audio_seconds: 203, prompt_tokens: 4, completion_tokens: 635, total_tokens: 3264 }
  t.strictSame(
    readUsage(endpointNamed('audio.transcriptions').usage, heard),
    sound({ inputTokens: 2629, inputAudioTokens: 2625, outputTokens: 635, seconds: 203 }),
  )
  t.strictSame(
    readUsage(endpointNamed('audio.transcriptions').usage, { ...heard, total_tokens: 3 }),
    doubtful({ inputTokens: 0, inputAudioTokens: 0, outputTokens: 635, seconds: 203 }),
  )
  t.strictSame(
    readUsage(endpointNamed('audio.translations').usage, { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }),
    sound({ inputTokens: 7, outputTokens: 5 }),
  )
})

t.test('speech: output tokens of events are audio tokens', async t => {
  t.strictSame(
    readUsage(endpointNamed('audio.speech').usage, { input_tokens: 14, output_tokens: 101, total_tokens: 115 }),
    sound({ inputTokens: 14, outputTokens: 101, outputAudioTokens: 101 }),
  )
})

t.test('realtime: cached audio and image tokens are not counted twice', async t => {
  const usage = {
    input_tokens: 100, output_tokens: 20,
    input_token_details: {
      audio_tokens: 50, image_tokens: 14, cached_tokens: 34,
      cached_tokens_details: { audio_tokens: 20, text_tokens: 10, image_tokens: 4 },
    },
    output_token_details: { audio_tokens: 15, text_tokens: 5 },
  }
  t.match(readUsage(endpointNamed('realtime').usage, usage), {
    suspect: false,
    usage: {
      inputTokens: 100, cachedInputTokens: 34, inputAudioTokens: 30, inputImageTokens: 10,
      outputTokens: 20, outputAudioTokens: 15,
    },
  })
})
