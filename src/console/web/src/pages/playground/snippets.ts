import { Code, javascript, python, pythonArguments, shell } from './literals.ts'
import { callOf, generateParts, generateTools, generationConfig, type Prompt, type Protocol } from './prompt.ts'

/** Stands for the user's API key in the code. */
export const PLACEHOLDER = 'YOUR_API_KEY'

export interface Snippet {
  readonly language: 'curl' | 'JavaScript' | 'Python'
  /** The command that installs the client library; null = no library is needed. */
  readonly install: string | null
  readonly code: string
}

/**
 * The request as code for curl and the official client libraries.
 *
 * @param baseUrl - base URL of the gateway, without a final slash
 */
export function snippets(prompt: Prompt, baseUrl: string): Snippet[] {
  const { npm, pip } = PACKAGES[prompt.protocol]
  const hasImages = prompt.images.length > 0
  const js = withFiles(JAVASCRIPT[prompt.protocol](marked(prompt), baseUrl), prompt, name => `readFileSync(${name}).toString('base64')`)
  const py = withFiles(PYTHON[prompt.protocol](marked(prompt), baseUrl), prompt, name => `base64.b64encode(open(${name}, "rb").read()).decode()`)
  return [
    { language: 'curl', install: null, code: curl(prompt, baseUrl) },
    { language: 'JavaScript', install: `npm install ${npm}`, code: (hasImages ? "import { readFileSync } from 'node:fs'\n" : '') + js },
    { language: 'Python', install: `pip install ${pip}`, code: (hasImages ? 'import base64\n\n' : '') + py },
  ]
}

const PACKAGES: Readonly<Record<Protocol, { npm: string; pip: string }>> = {
  chat: { npm: 'openai', pip: 'openai' },
  responses: { npm: 'openai', pip: 'openai' },
  messages: { npm: '@anthropic-ai/sdk', pip: 'anthropic' },
  generate: { npm: '@google/genai', pip: 'google-genai' },
}

const CREDENTIALS: Readonly<Record<Protocol, string>> = {
  chat: `Authorization: Bearer ${PLACEHOLDER}`,
  responses: `Authorization: Bearer ${PLACEHOLDER}`,
  messages: `x-api-key: ${PLACEHOLDER}`,
  generate: `x-goog-api-key: ${PLACEHOLDER}`,
}

function curl(prompt: Prompt, baseUrl: string): string {
  const { path, headers, body } = callOf(marked(prompt))
  const json = JSON.stringify(body, null, 2)
  const isPiped = prompt.images.length > 0
  const lines = [
    `curl${prompt.stream ? ' -N' : ''} ${shell(`${baseUrl}${path}`)}`,
    `-H ${shell(CREDENTIALS[prompt.protocol])}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
    `-H 'Content-Type: application/json'`,
    isPiped ? '-d @-' : `-d ${shell(json)}`,
  ]
  const command = lines.join(' \\\n  ')
  if (!isPiped) return command
  // Read images from files, because an image is too long for an argument of a command.
  const parts = json.split(MARK).map((part, index) =>
    (index % 2 === 1 ? `base64 < ${shell(prompt.images[Number(part)]?.name ?? '')} | tr -d '\\n'` : `printf %s ${shell(part)}`))
  return `{\n  ${parts.join('\n  ')}\n} | ${command}`
}

/** Encloses the number of an image. No text that a user types contains this character. */
const MARK = '\uE000'

/** The prompt, with a mark in place of each image's data. */
function marked(prompt: Prompt): Prompt {
  return { ...prompt, images: prompt.images.map((image, index) => ({ ...image, data: `${MARK}${index}${MARK}` })) }
}

/** Replaces each mark in source code by code that reads the file of the image. */
function withFiles(code: string, { images }: Prompt, read: (name: string) => string): string {
  return code.replace(/"([^"\uE000]*)\uE000(\d+)\uE000"/g, (_, before: string, index: string) => {
    const file = read(JSON.stringify(images[Number(index)]?.name ?? ''))
    return before === '' ? file : `${JSON.stringify(before)} + ${file}`
  })
}

type SnippetWriter = (prompt: Prompt, baseUrl: string) => string

const JAVASCRIPT: Readonly<Record<Protocol, SnippetWriter>> = {
  chat: (prompt, baseUrl) => openai(baseUrl) + (prompt.stream
    ? `const stream = await client.chat.completions.create(${javascript(callOf(prompt).body)})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')
`
    : `const response = await client.chat.completions.create(${javascript(callOf(prompt).body)})
console.log(${prompt.tools.length > 0 ? 'response.choices[0].message' : 'response.choices[0].message.content'}, response.usage)
`),
  responses: (prompt, baseUrl) => openai(baseUrl) + (prompt.stream
    ? `const stream = await client.responses.create(${javascript(callOf(prompt).body)})
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta)
}
`
    : `const response = await client.responses.create(${javascript(callOf(prompt).body)})
console.log(${prompt.tools.length > 0 ? 'response.output' : 'response.output_text'}, response.usage)
`),
  messages: (prompt, baseUrl) => {
    const { stream: _, ...body } = callOf(prompt).body
    return `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic(${javascript({ baseURL: baseUrl, apiKey: PLACEHOLDER })})
${prompt.stream
  ? `const stream = client.messages.stream(${javascript(body)})
stream.on('text', text => process.stdout.write(text))
console.log((await stream.finalMessage()).usage)
`
  : `const message = await client.messages.create(${javascript(body)})
console.log(message.content, message.usage)
`}`
  },
  generate: (prompt, baseUrl) => `import { GoogleGenAI } from '@google/genai'

const client = new GoogleGenAI(${javascript({ apiKey: PLACEHOLDER, httpOptions: { baseUrl, apiVersion: 'v1beta' } })})
${prompt.stream
  ? `const stream = await client.models.generateContentStream(${javascript(generation(prompt))})
for await (const chunk of stream) process.stdout.write(chunk.text ?? '')
`
  : `const response = await client.models.generateContent(${javascript(generation(prompt))})
console.log(${prompt.tools.length > 0 ? 'response.functionCalls, ' : ''}response.text, response.usageMetadata)
`}`,
}

function openai(baseUrl: string): string {
  return `import OpenAI from 'openai'

const client = new OpenAI(${javascript({ baseURL: `${baseUrl}/v1`, apiKey: PLACEHOLDER })})
`
}

/** The arguments for Google's library. The library itself puts the configuration into the request. */
function generation(prompt: Prompt) {
  const { model, system, text, images, tools } = prompt
  const config = {
    ...system !== '' && { systemInstruction: system },
    ...generationConfig(prompt),
    ...tools.length > 0 && { tools: generateTools(tools) },
  }
  return {
    model,
    contents: images.length === 0 ? text : [{ role: 'user', parts: generateParts(prompt) }],
    ...Object.keys(config).length > 0 && { config },
  }
}

const PYTHON: Readonly<Record<Protocol, SnippetWriter>> = {
  chat: (prompt, baseUrl) => pythonOpenai(baseUrl) + (prompt.stream
    ? `stream = client.chat.completions.create(${pythonArguments(callOf(prompt).body)})
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
`
    : `response = client.chat.completions.create(${pythonArguments(callOf(prompt).body)})
print(${prompt.tools.length > 0 ? 'response.choices[0].message' : 'response.choices[0].message.content'}, response.usage)
`),
  responses: (prompt, baseUrl) => pythonOpenai(baseUrl) + (prompt.stream
    ? `for event in client.responses.create(${pythonArguments(callOf(prompt).body)}):
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
`
    : `response = client.responses.create(${pythonArguments(callOf(prompt).body)})
print(${prompt.tools.length > 0 ? 'response.output' : 'response.output_text'}, response.usage)
`),
  messages: (prompt, baseUrl) => {
    const { stream: _, ...body } = callOf(prompt).body
    const values = pythonArguments(body)
    return `from anthropic import Anthropic

client = Anthropic(${pythonArguments({ base_url: baseUrl, api_key: PLACEHOLDER })})
${prompt.stream
  ? `with client.messages.stream(${values}) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
`
  : `message = client.messages.create(${values})
print(message.content, message.usage)
`}`
  },
  generate: (prompt, baseUrl) => {
    // The types of the library accept the protocol's names too.
    const { config, ...rest } = generation(prompt)
    const values = pythonArguments({
      ...rest,
      config: config && new Code(`types.GenerateContentConfig(**${python(config, 4)})`),
    })
    const client = pythonArguments({
      api_key: PLACEHOLDER,
      http_options: new Code(`types.HttpOptions(base_url=${python(baseUrl)}, api_version="v1beta")`),
    })
    return `from google import genai
from google.genai import types

client = genai.Client(${client})
${prompt.stream
  ? `for chunk in client.models.generate_content_stream(${values}):
    print(chunk.text or "", end="", flush=True)
`
  : `response = client.models.generate_content(${values})
print(${prompt.tools.length > 0 ? 'response.function_calls, ' : ''}response.text, response.usage_metadata)
`}`
  },
}

function pythonOpenai(baseUrl: string): string {
  return `from openai import OpenAI

client = OpenAI(${pythonArguments({ base_url: `${baseUrl}/v1`, api_key: PLACEHOLDER })})
`
}
