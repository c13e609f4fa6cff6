// A provider that signs whatever it is told to, and forges on request.
// Prints {"issuer": …} when it is ready. Takes one order a line, as JSON, and answers with one line:
//   {"do": "token", "alg", "claims", "header", "seconds"}  a token; claims that are null are left out
//   {"do": "none" | "hmac" | "stranger", …}                the same, unsigned, signed with the public
//                                                          key as a secret, or by somebody else
//   {"do": "rotate"}  other keys      {"do": "stop"}  goes down      {"do": "start"}  comes back
// Ends when its standard input does.
import { createHmac, createPublicKey } from 'node:crypto';
import { createInterface } from 'node:readline';
import { OAuth2Server } from 'oauth2-mock-server';

const ALGORITHMS = ['RS256', 'ES256', 'PS256', 'EdDSA'];
let generation = 0;
const made = async () => {
  generation += 1;
  const server = new OAuth2Server();
  for (const alg of ALGORITHMS) {
    await server.issuer.keys.generate(alg, { kid: `${alg}-${generation}` });
  }
  return server;
};

let server = await made();
await server.start(0, '127.0.0.1');
const { port } = server.address();
const issuer = `http://127.0.0.1:${port}`;
server.issuer.url = issuer;

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const sign = async (by, order) => {
  const transform = (header, payload) => {
    Object.assign(payload, { iss: issuer, aud: 'sutler', sub: 'cf' }, order.claims);
    Object.assign(header, order.header);
    for (const part of [header, payload]) {
      for (const key of Object.keys(part)) if (part[key] === null) delete part[key];
    }
  };
  const kid = `${order.alg ?? 'RS256'}-${generation}`;
  return by.issuer.buildToken({
    kid,
    expiresIn: order.seconds ?? 300,
    scopesOrTransform: transform,
  });
};

const reforge = async (order, header, signature) => {
  const token = await sign(server, { ...order, header: {} });
  const message = `${encode({ ...header, ...order.header })}.${token.split('.')[1]}`;
  return `${message}.${signature(message)}`;
};

const orders = {
  token: (order) => sign(server, order),
  none: (order) => reforge(order, { alg: 'none', typ: 'JWT' }, () => ''),
  hmac: (order) => {
    const jwk = server.issuer.keys.toJSON().find((it) => it.kid === `RS256-${generation}`);
    const pem = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    const hmac = (message) => createHmac('sha256', pem).update(message).digest('base64url');
    return reforge(order, { alg: 'HS256', typ: 'JWT', kid: jwk.kid }, hmac);
  },
  stranger: async (order) => {
    generation -= 1;
    const other = await made();
    other.issuer.url = issuer;
    return sign(other, order);
  },
  rotate: async () => {
    await server.stop();
    server = await made();
    await server.start(port, '127.0.0.1');
    server.issuer.url = issuer;
  },
  stop: () => server.stop(),
  start: async () => {
    await server.start(port, '127.0.0.1');
    server.issuer.url = issuer;
  },
};

console.log(JSON.stringify({ issuer }));
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  const answer = await orders[order.do](order);
  console.log(JSON.stringify(answer ?? 'done'));
}
process.exit(0);
