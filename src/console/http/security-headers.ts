import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'

/** Browser features that are switched off, because the console does not use them. */
const PERMISSIONS = [
  'accelerometer', 'camera', 'display-capture', 'geolocation', 'gyroscope', 'microphone', 'midi', 'payment',
  'publickey-credentials-get', 'screen-wake-lock', 'usb', 'xr-spatial-tracking',
].map(feature => `${feature}=()`).join(', ')

/** A browser that has used TLS uses only TLS for a year. */
const HSTS = 'max-age=31536000'

/**
 * Sets security headers. `styleSrc` needs no exception, because scripts set styles through CSSOM, which is not inline.
 * @param isSecure tells whether the request came over TLS
 */
export async function secureHeaders(app: FastifyInstance, isSecure: (request: object) => boolean): Promise<void> {
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"], scriptSrc: ["'self'"], styleSrc: ["'self'"], imgSrc: ["'self'"], fontSrc: ["'self'"],
        connectSrc: ["'self'"], manifestSrc: ["'self'"], frameAncestors: ["'none'"], baseUri: ["'none'"], formAction: ["'self'"],
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
