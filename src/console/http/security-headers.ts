import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'

/** What the console has no use for. */
const PERMISSIONS = [
  'accelerometer', 'camera', 'display-capture', 'geolocation', 'gyroscope', 'microphone', 'midi', 'payment',
  'publickey-credentials-get', 'screen-wake-lock', 'usb', 'xr-spatial-tracking',
].map(feature => `${feature}=()`).join(', ')

/** A year: a browser that has once come by TLS comes by nothing else. */
const HSTS = 'max-age=31536000'

/**
 * The headers that keep a browser from doing what the console never wants. Styles
 * are set by script (CSSOM), which is no inline style: so even those need no exception.
 *
 * @param isSecure whether a request came by TLS
 */
export async function secureHeaders(
  app: FastifyInstance, isSecure: (request: object) => boolean,
): Promise<void> {
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'"],
        fontSrc: ["'self'"],
        connectSrc: ["'self'"],
        manifestSrc: ["'self'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'self'"],
      },
    },
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: false,
  })
  app.addHook('onRequest', async (request, reply) => {
    void reply.header('permissions-policy', PERMISSIONS)
    if (isSecure(request)) void reply.header('strict-transport-security', HSTS)
  })
}
