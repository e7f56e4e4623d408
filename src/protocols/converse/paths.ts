import { defineEndpoint, withPathModel } from '../endpoint/classified.ts'
import type { Classified } from '../endpoint/protocol.ts'
import { CONVERSE_FORMAT } from './errors.ts'
import { ConverseMeter } from './meter.ts'
import { CONVERSE_USAGE } from './usage.ts'

const CONVERSE = defineEndpoint({
  name: 'converse', format: CONVERSE_FORMAT, modelIn: 'path', modelRequired: true, metering: 'text',
  prompt: { members: ['system', 'messages'] }, responseMembers: ['output'], respondsWithJson: true,
  outputBounds: ['inferenceConfig.maxTokens'], boundsThinking: true,
  usage: CONVERSE_USAGE,
  createMeter: limits => new ConverseMeter(limits),
})

const PREFIX = '/model/'
const PATH = /^\/model\/[^/]+(?=\/converse(?:-stream)?$)/

/** Classifies `/model/{model}/converse` and `/model/{model}/converse-stream`. */
export function classifyConverse(path: string): Classified | null {
  const found = PATH.exec(path)
  return found && withPathModel(CONVERSE, path, PREFIX.length, found[0].length)
}

export function conversePath(model: string, isStream: boolean): string {
  return `${PREFIX}${encodeURIComponent(model)}/converse${isStream ? '-stream' : ''}`
}
