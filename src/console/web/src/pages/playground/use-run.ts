import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { SESSION, endSession, type Session } from '../../api-hooks.ts'
import { callOf, type Call, type Prompt } from './prompt.ts'
import { run, type Progress } from './run.ts'

export interface Running {
  /** The progress of the last request; null = no request was sent. */
  readonly progress: Progress | null
  readonly isRunning: boolean
  readonly send: (prompt: Prompt) => void
  readonly stop: () => void
}

/** Sends prompts as the user of the console, one at a time. */
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
        // A 401 without a request ID is from the console, not from the gateway, and means that the session has ended.
        if (response.status === 401 && !response.headers.has('x-gateway-request-id')) endSession(client)
        return response
      },
      now: () => performance.now(),
      // Ignore the progress of a request that a newer request has replaced.
      onProgress: current => { if (abort.current === controller) setProgress(current) },
    })
  }, [client])
  const isRunning = progress !== null && (progress.phase === 'waiting' || progress.phase === 'reading')
  return { progress, isRunning, send, stop }
}
