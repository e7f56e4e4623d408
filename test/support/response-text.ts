import type { ResponseHandler } from '../../src/proxy/transport.ts'

/**
 * @param send gets a handler, to be given to whoever sends the request
 * @param onFailed is called from within the handler, before the promise rejects
 * @returns the answer's text; rejects with what the handler was told
 */
export function responseText(send: (handler: ResponseHandler) => void, onFailed = () => {}): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    send({
      onRequestStart: () => {},
      onResponseStart: () => {},
      onResponseData: (_controller, chunk) => {
        text += chunk
      },
      onResponseEnd: () => resolve(text),
      onResponseError: (_controller, error) => {
        onFailed()
        reject(error)
      },
    })
  })
}
