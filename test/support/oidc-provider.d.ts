/** The part of the package that the tests use; it has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): RequestListener
    interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<{ readonly uid: string }>
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object): Promise<void>
    readonly Grant: new (properties: object) => { addOIDCScope(scope: string): void, save(): Promise<string> }
  }
}
