import t from 'tap'
import { errorKindOf, statusOf } from '../../../src/protocols/neutral/errors.ts'

for (const [names, expected] of [
  [['rate_limit_exceeded'], 429], [['unknown', 'overloaded_error'], 503], [['429'], 429], [[503], 503], [[400], 400], [[399], null], [[599], 599], [[600], null], [['4e2'], 400], [[429.5], null],
  [['context_length_exceeded'], 400], [['model_not_found'], 404], [['vector_store_timeout'], 504], [['invalid_base64_image'], 400], [['image_too_large'], 400], [['unsupported_image_media_type'], 400],
  [['image'], null], [['constructor'], null], [[null, undefined, {}], null], [[], null], [['model_not_found', 500], 404],
] as const) {
  t.test(`an error of ${JSON.stringify(names)} has the status ${expected}`, async t => t.equal(statusOf(...names), expected))
}

for (const [status, name, expected] of [
  [400, null, 'invalid_request'], [401, null, 'authentication'], [402, null, 'billing'], [403, null, 'permission'], [404, null, 'not_found'], [408, null, 'timeout'], [413, null, 'too_large'], [422, null, 'invalid_request'],
  [429, null, 'rate_limit'], [499, null, 'invalid_request'], [500, null, 'server'], [502, null, 'server'], [503, null, 'overloaded'], [504, null, 'timeout'], [529, null, 'overloaded'],
  [500, 'overloaded_error', 'overloaded'], [429, 'slow_down', 'overloaded'], [400, 'rate_limit_error', 'rate_limit'], [429, 'insufficient_quota', 'billing'], [429, 'usage_not_included', 'billing'], [400, 'billing_error', 'billing'],
  [403, 'other', 'permission'],
] as const) {
  t.test(`an error of ${status}${name === null ? '' : ` and ${name}`} is of the kind ${expected}`, async t => t.equal(errorKindOf(status, name), expected))
}
