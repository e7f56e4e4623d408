import t from 'tap'
import { reasonIn } from '../../../src/protocols/neutral/error-reason.ts'

const CASES: readonly (readonly [error: Record<string, unknown>, expected: string | null])[] = [
  [{ code: 'context_length_exceeded' }, 'context_length'],
  [{ code: 'Content_Filter' }, 'content_filter'],
  [{ type: 'exceed_context_size_error' }, 'context_length'],
  [{ status: 'data_inspection_failed' }, 'content_filter'],
  [{ code: 400, innererror: { code: 'ResponsibleAIPolicyViolation' } }, 'content_filter'],
  [{ inner_error: { code: 'tokens_limit_reached' } }, 'context_length'],
  [{ innererror: 'x', inner_error: { code: 'tokens_limit_reached' } }, 'context_length'],
  [{ code: 'constructor' }, null],
  [{ code: 'rate_limit_exceeded', message: 'Too many requests' }, null],
  [{ message: 'prompt is too long: 210000 tokens > 200000 maximum' }, 'context_length'],
  [{ message: 'Input is too long for requested model.' }, 'context_length'],
  [{ message: "This model's maximum context length is 8192 tokens" }, 'context_length'],
  [{ message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).' }, 'context_length'],
  [{ message: 'Too many tokens in the request' }, 'context_length'],
  [{ message: 'Too many requests' }, null],
  [{ message: 'Range of input length should be [1, 6000]' }, 'context_length'],
  [{ message: '`inputs` must have less than 1024 tokens' }, 'context_length'],
  [{ message: 'The input token count is 50000 but the model supports 32768' }, 'context_length'],
  [{ message: "The response was filtered due to Azure OpenAI's content management policy." }, 'content_filter'],
  [{ message: 'Your request was rejected by our safety system.' }, 'content_filter'],
  [{ message: 'Your prompt was flagged by moderation' }, 'content_filter'],
  [{ message: 'Your account was flagged for abuse' }, null],
  [{ message: 'Your account (a@b.c) has been temporarily flagged' }, null],
  [{ message: 'The API key is flagged as leaked' }, null],
  [{ message: 'Content Exists Risk' }, 'content_filter'],
  [{ message: 'Risk: Content Exists Risk' }, null],
  [{ code: 'content_filter', message: 'prompt is too long' }, 'content_filter'],
  [{ message: 5 }, null],
  [{}, null],
]

for (const [error, expected] of CASES) {
  t.test(`${JSON.stringify(error)} ${expected === null ? 'has no reason' : `is ${expected}`}`, async t => t.equal(reasonIn(error), expected))
}
