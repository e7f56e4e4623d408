import type { ResponseHandler } from '../../src/proxy/upstream/transport.ts'

/**
 * @param send gets a handler and passes it to the sender of the request
 * @param onFailed is called from within the handler, before the promise rejects
 * @returns the response's text; rejects with the error that the handler got
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
