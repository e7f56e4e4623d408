// Loaded before a test file: the source that MUTANT names has its fault, in this process and in its threads.

import { registerHooks } from 'node:module'
import type { Fault } from './faults.ts'

const { url, start, end, text } = JSON.parse(process.env['MUTANT'] ?? '') as Fault & { readonly url: string }

registerHooks({
  load(each, context, next) {
    const loaded = next(each, context)
    if (each !== url) return loaded
    const source = String(loaded.source)
    return { ...loaded, source: source.slice(0, start) + text + source.slice(end) }
  },
})
