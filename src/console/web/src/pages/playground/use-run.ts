import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { SESSION, endSession } from '../../ask.ts'
import type { Session } from '../../ask.ts'
import { callOf } from './prompt.ts'
import type { Call, Prompt } from './prompt.ts'
import { run } from './run.ts'
import type { Progress } from './run.ts'

export interface Running {
  /** null = nothing was sent yet. */
  readonly progress: Progress | null
  readonly isRunning: boolean
  readonly send: (prompt: Prompt) => void
  readonly stop: () => void
}

/** Sends prompts, one at a time, as the user of the console. */
export function useRun(): Running {
  const client = useQueryClient()
  const [progress, setProgress] = useState<Progress | null>(null)
  const abort = useRef<AbortController>(null)
  useEffect(() => () => { abort.current?.abort() }, [])
  const stop = useCallback(() => { abort.current?.abort() }, [])
  const send = useCallback((prompt: Prompt) => {
    abort.current?.abort()
    const controller = new AbortController()
    abort.current = controller
    const csrf = client.getQueryData<Session>(SESSION)?.csrf ?? ''
    void run(callOf(prompt), {
      protocol: prompt.protocol,
      signal: controller.signal,
      send: async ({ path, headers, body }: Call, signal) => {
        const response = await fetch(`/console/api/playground${path}`, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json', 'x-csrf-token': csrf },
          body: JSON.stringify(body),
          signal,
          cache: 'no-store',
          credentials: 'same-origin',
        })
        // Not the gateway's answer, which has an id, but the console's: the session is over.
        if (response.status === 401 && !response.headers.has('x-gateway-request-id')) endSession(client)
        return response
      },
      now: () => performance.now(),
      // What was stopped for the sake of another is not told over it.
      onProgress: news => { if (abort.current === controller) setProgress(news) },
    })
  }, [client])
  const isRunning = progress !== null && (progress.phase === 'waiting' || progress.phase === 'reading')
  return { progress, isRunning, send, stop }
}
