import fc from 'fast-check'
import t from 'tap'
import { classifyPath, isApiPath } from '../../src/protocols/classify-path.ts'

const summary = (path: string) => {
  const { endpoint, pathModel } = classifyPath(path)
  return [endpoint.name, endpoint.protocol, pathModel]
}

const VERTEX = '/v1/projects/p/locations/l/publishers'
const BETA = '/v1beta1/projects/p/locations/l'

t.test('each path has an endpoint, a protocol and a model', async t => {
  const cases: [string, string, string, string | null][] = [
    ['/v1/chat/completions', 'chat.completions', 'chat', null],
    ['/v1/completions', 'completions', 'chat', null],
    ['/v1/responses', 'responses', 'responses', null],
    ['/v1/responses/compact', 'responses.compact', 'responses', null],
    ['/v1/responses/input_tokens', 'responses.input_tokens', 'responses', null],
    ['/v1/responses/r1', 'other', 'chat', null],
    ['/v1/decisions', 'decisions', 'responses', null],
    ['/v1/embeddings', 'embeddings', 'chat', null],
    ['/v1/images/generations', 'images.generations', 'chat', null],
    ['/v1/images/edits', 'images.edits', 'chat', null],
    ['/v1/audio/transcriptions', 'audio.transcriptions', 'chat', null],
    ['/v1/audio/translations', 'audio.translations', 'chat', null],
    ['/v1/audio/speech', 'audio.speech', 'chat', null],
    ['/v1/realtime', 'realtime', 'chat', null],
    ['/v1/messages', 'messages', 'messages', null],
    ['/v1/messages/count_tokens', 'messages.count_tokens', 'messages', null],
    ['/v1/messages/batches', 'other', 'messages', null],
    ['/v1/models', 'models.list', 'chat', null],
    ['/v1/models/gpt-4', 'models.get', 'chat', 'gpt-4'],
    ['/v1/models/ft:gpt-4:org', 'models.get', 'chat', 'ft:gpt-4:org'],
    ['/v1/models/a%2Fb', 'models.get', 'chat', 'a/b'],
    ['/v1/models/org/model', 'models.get', 'chat', 'org/model'],
    ['/v1beta/models', 'models.list', 'generate', null],
    ['/v1beta/models/m', 'models.get', 'generate', 'm'],
    ['/v1beta/models/m:generateContent', 'generate.content', 'generate', 'm'],
    ['/v1/models/m:generateContent', 'generate.content', 'generate', 'm'],
    ['/v1beta/models/m:streamGenerateContent', 'generate.stream', 'generate', 'm'],
    ['/v1beta/models/m:countTokens', 'generate.count_tokens', 'generate', 'm'],
    ['/v1beta/models/m:embedContent', 'generate.embed', 'generate', 'm'],
    ['/v1beta/models/m:batchEmbedContents', 'generate.batch_embed', 'generate', 'm'],
    ['/v1beta/models/a%2Fb:generateContent', 'generate.content', 'generate', 'a/b'],
    ['/v1beta/models/a:b:generateContent', 'generate.content', 'generate', 'a:b'],
    ['/v1beta/tunedModels/t:generateContent', 'generate.content', 'generate', 't'],
    ['/v1/tunedModels/t:generateContent', 'generate.content', 'generate', 't'],
    ['/v1/tunedModels/t:streamGenerateContent', 'generate.stream', 'generate', 't'],
    ['/v1/tunedModels/t', 'other', 'generate', null],
    ['/v1beta/models/:generateContent', 'generate.content', 'generate', ''],
    ['/v1beta/models/m:predict', 'other', 'generate', 'm'],
    ['/v1beta/models/m:predictLongRunning', 'other', 'generate', 'm'],
    ['/v1/models/m:batchGenerateContent', 'other', 'generate', 'm'],
    ['/v1/models/m:asyncBatchEmbedContent', 'other', 'generate', 'm'],
    ['/v1beta/models/m/operations/o', 'generate.operation', 'generate', 'm'],
    ['/v1/models/m/operations/o:cancel', 'generate.operation', 'generate', 'm'],
    ['/v1beta/models/m:unheardOf', 'other', 'generate', 'm'],
    ['/v1beta/models/a%2Fb:predict', 'other', 'generate', 'a/b'],
    ['/v1beta/files', 'other', 'generate', null],
    ['/v1beta/interactions', 'interactions', 'generate', null],
    ['/v1alpha/interactions/', 'interactions', 'generate', null],
    ['/v1/interactions', 'interactions', 'generate', null],
    ['/v1/Interactions;v=1', 'interactions', 'generate', null],
    ['/v1/projects/p/locations/l/interactions', 'interactions', 'generate', null],
    ['/v1beta/interactions/i', 'other', 'generate', null],
    ['/v1/interactions/i', 'other', 'generate', null],
    ['/v1/projects/p/locations/l/interactions/i/cancel', 'other', 'generate', null],
    ['/v1/x/interactions', 'other', 'chat', null],
    ['/v1beta/openai/chat/completions', 'chat.completions', 'chat', null],
    ['/v1beta/openai/embeddings', 'embeddings', 'chat', null],
    ['/v1beta/openai/models', 'models.list', 'chat', null],
    ['/v1beta/openai/models/m', 'models.get', 'chat', 'm'],
    ['/v1beta/openai/models/', 'models.list', 'chat', null],
    ['/v1beta/openai/batches/b', 'other', 'chat', null],
    ['/v1beta/openai/messages', 'other', 'chat', null],
    ['/v1beta/openaix/chat/completions', 'other', 'generate', null],
    [`${VERTEX}/google/models/m:generateContent`, 'generate.content', 'generate', 'm'],
    [`${VERTEX}/google/models/m:streamGenerateContent`, 'generate.stream', 'generate', 'm'],
    [`${VERTEX}/google/models/m:countTokens`, 'generate.count_tokens', 'generate', 'm'],
    [`${VERTEX}/google/models/m:predict`, 'other', 'generate', 'm'],
    [`${VERTEX}/google/models/m:unheardOf`, 'other', 'generate', 'm'],
    [`${VERTEX}/google/models/m/operations/o`, 'generate.operation', 'generate', 'm'],
    [`${VERTEX}/google/models/m:fetchPredictOperation`, 'generate.operation', 'generate', 'm'],
    [`${VERTEX}/google/models/m`, 'generate.operation', 'generate', 'm'],
    [`${VERTEX}/anthropic/models/c@2:rawPredict`, 'messages', 'messages', 'c@2'],
    [`${VERTEX}/anthropic/models/c@2:streamRawPredict`, 'messages', 'messages', 'c@2'],
    [`${VERTEX}/anthropic/models/count-tokens:rawPredict`, 'messages.count_tokens', 'messages', null],
    [`${VERTEX}/mistralai/models/m:rawPredict`, 'other', 'generate', 'm'],
    [`${VERTEX}/google/models/`, 'other', 'chat', null],
    [`${VERTEX}/google/models/:generateContent`, 'generate.content', 'generate', ''],
    ['/v1/publishers/google/models/m:generateContent', 'generate.content', 'generate', 'm'],
    ['/v1/projects/p/locations/l/endpoints/openapi/chat/completions', 'chat.completions', 'chat', null],
    ['/v1/projects/p/locations/l/endpoints/1:predict', 'other', 'generate', '1'],
    ['/v1/projects/p/locations/l/endpoints/1:generateContent', 'generate.content', 'generate', '1'],
    ['/v1/projects/p/locations/l/endpoints/1%3ArawPredict', 'other', 'generate', '1'],
    ['/v1/projects/p/locations/l/endpoints/1', 'other', 'chat', null],
    ['/v1/projects/p/locations/l/endpoints/1/', 'other', 'generate', '1'],
    ['/v1/projects/p/locations/l/endpoints/1/chat/completions', 'chat.completions', 'chat', '1'],
    ['/v1/projects/p/locations/l/endpoints/1/invoke/v1/chat/completions', 'other', 'generate', '1'],
    ['/v1/projects/p/locations/l/endpoints/1/models/m', 'other', 'generate', '1'],
    ['/v1/projects/p/locations/l/endpoints/1/operations/2', 'generate.operation', 'generate', '1'],
    ['/openai/deployments/d/chat/completions', 'chat.completions', 'chat', 'd'],
    ['/openai/v1/deployments/d/images/generations', 'images.generations', 'chat', 'd'],
    ['/v1/deployments/d/embeddings', 'embeddings', 'chat', 'd'],
    ['/v1/engines/e/completions', 'completions', 'chat', 'e'],
    ['/v1/engines/e', 'other', 'chat', 'e'],
    ['/v1/engines', 'other', 'chat', null],
    ['/openai/deployments/chat/completions', 'completions', 'chat', 'chat'],
    ['/openai/deployments/org/name/chat/completions', 'chat.completions', 'chat', 'org/name'],
    ['/openai/deployments/org%2Fname/audio/speech', 'audio.speech', 'chat', 'org/name'],
    ['/openai/deployments/d/responses/compact', 'responses.compact', 'responses', 'd'],
    ['/openai/deployments/d/models', 'other', 'chat', 'd'],
    ['/openai/deployments/d/messages', 'other', 'chat', 'd'],
    ['/openai/deployments/d', 'other', 'chat', 'd'],
    ['/openai/deployments/', 'other', 'chat', null],
    ['/openai/responses', 'responses', 'responses', null],
    ['/openai/v1/chat/completions', 'chat.completions', 'chat', null],
    ['/openai/realtime', 'realtime', 'chat', null],
    ['/openai/batches', 'other', 'chat', null],
    ['/openai/models', 'other', 'chat', null],
    ['/openai/models/m', 'other', 'chat', null],
    ['/openai/v1/messages', 'other', 'chat', null],
    ['/openai/deployment', 'other', 'chat', null],
    ['/v1alpha/models', 'models.list', 'generate', null],
    ['/v1alpha/models/m', 'models.get', 'generate', 'm'],
    ['/v1alpha/models/m:generateContent', 'generate.content', 'generate', 'm'],
    ['/v1alpha/models/m:unheardOf', 'other', 'generate', 'm'],
    ['/v1alpha/auth_tokens', 'other', 'generate', null],
    ['/v1beta1/publishers/google/models/m:generateContent', 'generate.content', 'generate', 'm'],
    ['/v1beta1/publishers/google/models/m:predict', 'other', 'generate', 'm'],
    ['/v1beta1/publishers/google/models/m:fetchPredictOperation', 'generate.operation', 'generate', 'm'],
    ['/v1beta1/publishers/google/models/m', 'generate.operation', 'generate', 'm'],
    ['/v1beta1/publishers/google/models', 'other', 'generate', null],
    ['/v1beta1/publishers/google/models/', 'other', 'generate', null],
    ['/v1beta1/publishers/anthropic/models/c@2:rawPredict', 'messages', 'messages', 'c@2'],
    [`${BETA}/publishers/anthropic/models/count-tokens:rawPredict`, 'messages.count_tokens', 'messages', null],
    [`${BETA}/publishers/google/models/m:streamGenerateContent`, 'generate.stream', 'generate', 'm'],
    [`${BETA}/endpoints/openapi/chat/completions`, 'chat.completions', 'chat', null],
    [`${BETA}/endpoints/1:streamGenerateContent`, 'generate.stream', 'generate', '1'],
    [`${BETA}/endpoints/1/chat/completions/`, 'chat.completions', 'chat', '1'],
    [`${BETA}/endpoints/1`, 'other', 'generate', null],
    [`${BETA}/interactions`, 'interactions', 'generate', null],
    [`${BETA}/interactions/i`, 'other', 'generate', null],
    [`${BETA}/batchPredictionJobs`, 'other', 'generate', null],
    ['/v1beta1/interactions', 'interactions', 'generate', null],
    ['/v1beta1/models', 'models.list', 'generate', null],
    ['/v1beta1/models/m:generateContent', 'generate.content', 'generate', 'm'],
    ['/v1beta1/cachedContents', 'other', 'generate', null],
    ['/v1beta10/cachedContents', 'other', 'chat', null],
    ['/upload/v1beta/files', 'other', 'generate', null],
    ['/upload/v1beta/models/m:generateContent', 'other', 'generate', null],
    ['/download/v1beta/files/f:download', 'other', 'generate', null],
    ['/upload/files', 'other', 'chat', null],
    ['/v1/files', 'other', 'chat', null],
    ['/api/status', 'status', 'chat', null],
    ['/', 'other', 'chat', null],
    ['/v2/chat/completions', 'other', 'chat', null],
  ]
  for (const [path, ...expected] of cases) t.strictSame(summary(path), expected, path)
})

t.test('a path in another spelling is metered if an upstream can accept that spelling', async t => {
  for (const path of [
    '/v1/Chat/Completions', '/v1/chat/completions/', '/V1/CHAT/COMPLETIONS', '/v1/chat/completions;v=1',
  ]) {
    t.strictSame(summary(path), ['chat.completions', 'chat', null], path)
  }
  for (const path of ['/v1/Messages', '/v1/messages/']) {
    t.strictSame(summary(path), ['messages', 'messages', null], path)
  }
  for (const path of [
    '/V1Beta/Models/M:GenerateContent', '/v1beta/models/M:generatecontent',
    '/v1beta/models/M:generateContent/',
    '/v1beta/models/M:generateContent;x=1', '/V1alpha/models/M:generateContent',
  ]) {
    t.strictSame(summary(path), ['generate.content', 'generate', 'M'], path)
  }
  for (const path of [
    '/V1/Projects/p/Locations/l/Publishers/Google/Models/M:GenerateContent',
    '/v1/publishers/google/models/M%3Ageneratecontent/',
    '/V1Beta1/Publishers/Google/Models/M:GenerateContent;x=1',
    '/v1beta1/publishers/google/models/M%3agenerateContent',
    `${BETA.toUpperCase()}/ENDPOINTS/M:generatecontent/`,
  ]) t.strictSame(summary(path), ['generate.content', 'generate', 'M'], path)
  const raw = '/v1/publishers/Anthropic/models/M:RAWpredict;x=1'
  t.strictSame(summary(raw), ['messages', 'messages', 'M'])
  t.strictSame(summary('/V1Beta/OpenAI/Chat/Completions/'), ['chat.completions', 'chat', null])
  for (const path of ['/v1beta/models/t%3AgenerateContent', '/v1beta/tunedModels/t%3agenerateContent/']) {
    t.strictSame(summary(path), ['generate.content', 'generate', 't'], path)
  }
  for (const path of [
    '/OpenAI/Deployments/D/Chat/Completions', '/openai/deployments/D/chat/completions/',
    '/openai/V1/deployments/D/chat/completions;x=1',
  ]) t.strictSame(summary(path), ['chat.completions', 'chat', 'D'], path)
  t.strictSame(summary('/v1beta/models/ft%3At'), ['models.get', 'generate', 'ft:t'])
  t.ok(isApiPath('/V1/x'))
})

t.test('property: the model is read from the path', async () => {
  const word = fc.stringMatching(/^[a-zA-Z0-9._-]{1,20}$/)
  const prefixes = fc.constantFrom(
    '/v1/models/', '/v1beta/models/', '/v1alpha/models/', '/v1beta1/models/', `${VERTEX}/google/models/`,
    `${BETA}/publishers/google/models/`,
  )
  fc.assert(fc.property(word, prefixes, fc.constantFrom(':generateContent', ''), (model, prefix, verb) => {
    const path = prefix + model + verb
    const { pathModel, pathModelStart, pathModelEnd } = classifyPath(path)
    return pathModel === model && path.slice(pathModelStart, pathModelEnd) === model
  }))
})

t.test('property: every path has an endpoint with methods', async () => {
  fc.assert(
    fc.property(fc.webPath(), path => classifyPath(path).endpoint.methods.length > 0), { numRuns: 1_000 },
  )
})

t.test('paths below the API prefixes are API paths', async t => {
  for (const path of ['/v1/x', '/v1beta/x', '/v1alpha/x', '/v1beta1/x', '/v1/', '/upload/v1/x', '/openai/x']) {
    t.ok(isApiPath(path), path)
  }
  const others = ['/', '/v1', '/v1beta', '/v2/x', '/v1betax/y', '/v1beta12/y', '/api/status', '/upload/x', '/x/v1/y']
  for (const path of others) {
    t.notOk(isApiPath(path), path)
  }
})

t.test('a very long nested path is classified in one pass', async t => {
  const nested = 'projects/a/locations/b/endpoints/openapi/'.repeat(400)
  const { endpoint } = classifyPath(`/v1/${nested}${';'.repeat(40_000)}/x`)
  t.match(endpoint, { name: 'other', protocol: 'chat' })
})
