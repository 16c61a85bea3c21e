import { hash } from 'node:crypto';
import type { GpuPackage, ServerType } from './world.ts';

/** The server types a new world sells. `@source API §2` */
export function seedServerTypes(): ServerType[] {
  return [
    {
      id: 3,
      name: 'sliders-1',
      pricingMode: 'sliders',
      gpu: false,
      description: 'Cores, memory and disk chosen freely.',
      pool: 'main',
      packages: [],
      plans: [],
      images: images(3),
    },
    {
      id: 5,
      name: 'plans-1',
      pricingMode: 'plans',
      gpu: false,
      description: 'Fixed sizes.',
      pool: 'main',
      packages: [],
      plans: [
        { id: 51, name: 'small', cores: 1, memoryMb: 2048, diskGb: 40 },
        { id: 52, name: 'medium', cores: 2, memoryMb: 4096, diskGb: 80 },
        { id: 53, name: 'large', cores: 4, memoryMb: 8192, diskGb: 160 },
      ],
      images: images(5),
    },
    {
      id: 8,
      name: 'gpu-fixed',
      pricingMode: 'fixed',
      gpu: true,
      description: 'Servers with graphics cards, sold as packages.',
      pool: 'gpu',
      packages: [
        gpuPackage({
          key: 'l40s-1',
          gpuModel: 'L40S',
          gpuCount: 1,
          cores: 8,
          memoryGb: 64,
          diskGb: 250,
          price: 890,
          capacity: 8,
        }),
        gpuPackage({
          key: 'l40s-2',
          gpuModel: 'L40S',
          gpuCount: 2,
          cores: 16,
          memoryGb: 128,
          diskGb: 500,
          price: 1690,
          capacity: 4,
        }),
        gpuPackage({
          key: 'h100-1',
          gpuModel: 'H100',
          gpuCount: 1,
          cores: 24,
          memoryGb: 192,
          diskGb: 1000,
          price: 2490.5,
          capacity: 2,
        }),
      ],
      plans: [],
      images: images(8),
    },
  ];
}

/** The sizes of servers of slider types. */
export const SIZE_BOUNDS = {
  cores: { min: 1, max: 32 },
  memory_mb: { min: 512, max: 262_144 },
  disk_gb: { min: 10, max: 4096 },
};

/** Public addresses by pool: three leading numbers of each /24 that it holds, and so at most 254 addresses each. */
export const ADDRESS_POOLS: Readonly<Record<string, readonly string[]>> = {
  main: ['203.0.113', '192.0.2'],
  gpu: ['198.51.100', '198.18.0'],
};

function gpuPackage(size: Omit<GpuPackage, 'name' | 'backupPrice' | 'withdrawn'>): GpuPackage {
  const name = `${size.gpuCount} × ${size.gpuModel}`;
  return { ...size, name, backupPrice: Math.round(size.price * 0.1), withdrawn: false };
}

function images(typeId: number): { id: string; name: string }[] {
  return ['ubuntu-24.04', 'debian-13', 'almalinux-10', 'windows-2025'].map((name) => ({
    id: `os-${hash('sha256', `${typeId}:${name}`).slice(0, 12)}`,
    name,
  }));
}
