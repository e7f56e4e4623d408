import t from 'tap'
import { countBody, invokeBody } from '../../../src/providers/bedrock/body.ts'

const VERSION = '"anthropic_version":"bedrock-2023-05-31"'

t.test('model and stream are removed from a body for Bedrock, and the other members are unchanged', async t => {
  const cases = [
    ['{"model":"m","max_tokens":1.0,"stream":true}', `{"max_tokens":1.0,${VERSION}}`],
    ['{ "max_tokens" : 1 , "model" : "m" , "stream" : false }', `{ "max_tokens" : 1 ,   ${VERSION}}`],
    ['{"a":"\\u00e9 model","model":"m","b":{"model":"kept","stream":1}}', `{"a":"\\u00e9 model","b":{"model":"kept","stream":1},${VERSION}}`],
    ['{"model":"m","stream":true}', `{${VERSION}}`],
    ['{"model":"a","x":1,"model":"b"}', `{"x":1,${VERSION}}`],
    ['{"m\\u006fdel":"m","x":[1,2]\n}', `{"x":[1,2]\n,${VERSION}}`],
    ['{}', `{${VERSION}}`],
    ['{"anthropic_version":"bedrock-2027-01-01","x":1}', '{"x":1,"anthropic_version":"bedrock-2027-01-01"}'],
  ] as const
  for (const [body, expected] of cases) {
    const written = invokeBody(Buffer.from(body), []).toString()
    t.equal(written, expected)
    t.doesNotThrow(() => JSON.parse(written) as unknown)
  }
})

t.test('beta features of the headers are added to those of the body', async t => {
  const headers = ['Anthropic-Beta', 'one, two', 'x', 'y', 'anthropic-beta', 'three,,one']
  const written = (body: string) => JSON.parse(invokeBody(Buffer.from(body), headers).toString()) as object
  t.match(written('{"x":1}'), { anthropic_beta: ['one', 'two', 'three'] })
  t.match(written('{"anthropic_beta":["zero"],"x":1}'), { anthropic_beta: ['zero', 'one', 'two', 'three'] })
  t.match(written('{"anthropic_beta":"zero","x":1}'), { anthropic_beta: ['zero', 'one', 'two', 'three'] })
})

t.test('a body that is not an object is not changed', async t => {
  t.equal(invokeBody(Buffer.from('[1]'), []).toString(), '[1]')
})

t.test('a count request contains a complete request', async t => {
  const counted = (body: string): string => {
    const { input } = JSON.parse(countBody(Buffer.from(body), []).toString()) as { input: { invokeModel: { body: string } } }
    return Buffer.from(input.invokeModel.body, 'base64').toString()
  }
  t.equal(counted('{"model":"m","messages":[]}'), `{"messages":[],${VERSION},"max_tokens":1}`)
  t.equal(counted('{"max_tokens":5,"model":"m"}'), `{"max_tokens":5,${VERSION}}`)
})
