import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { SESSION } from '../../ask.ts'
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
      send: ({ path, headers, body }: Call, signal) => fetch(`/console/api/playground${path}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'x-csrf-token': csrf },
        body: JSON.stringify(body),
        signal,
        cache: 'no-store',
        credentials: 'same-origin',
      }),
      now: () => performance.now(),
      // What was stopped for the sake of another is not told over it.
      onProgress: news => { if (abort.current === controller) setProgress(news) },
    })
  }, [client])
  const isRunning = progress !== null && (progress.phase === 'waiting' || progress.phase === 'reading')
  return { progress, isRunning, send, stop }
}
