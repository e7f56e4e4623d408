import type Anthropic from '@anthropic-ai/sdk'
import type { Content, GenerateContentConfig, GenerationConfig, Tool } from '@google/genai'
import type OpenAI from 'openai'

/** Options of the SDK itself, which it does not send. */
type SdkOption = 'httpOptions' | 'abortSignal' | 'automaticFunctionCalling'
/** Members of the request itself; the SDK sends the rest of its configuration in `generationConfig`. */
type OutsideConfig = 'systemInstruction' | 'safetySettings' | 'tools' | 'toolConfig' | 'cachedContent' | 'labels' | 'modelArmorConfig' | 'serviceTier' | 'store'

/** The SDK converts several input forms of these members to this form. */
interface GenerateRequest extends Omit<Pick<GenerateContentConfig, OutsideConfig>, 'systemInstruction' | 'tools'> {
  model: string
  contents: Content[]
  systemInstruction?: Content
  tools?: Tool[]
  generationConfig: Omit<GenerateContentConfig, OutsideConfig | SdkOption> & Omit<GenerationConfig, keyof GenerateContentConfig>
}

/** The body of a request of each protocol, by the types of its vendor's SDK. `fields.ts` reads this file with the compiler. */
export interface SdkRequests {
  chat: OpenAI.ChatCompletionCreateParams
  responses: OpenAI.Responses.ResponseCreateParams
  messages: Anthropic.MessageCreateParams | Anthropic.Beta.Messages.MessageCreateParams
  generate: GenerateRequest
}
